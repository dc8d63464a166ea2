// Explains to the sender why its bytes are not the expected message.
import { errorText } from '../errors.ts';

/**
 * The protobuf library names the mistake in the bytes, except for a map entry without a value, where it fails with an
 * internal error.
 */
export function toDecodingProblem(error: unknown): string {
  return error instanceof TypeError ? 'an entry of a map has no value' : errorText(error);
}
