// Why bytes are not the message that they should be, for whom has sent them.
import { errorText } from '../errors.ts';

/** The protobuf library names what is wrong with bytes, but an entry of a map without a value makes it
 * stumble over its own feet. */
export function toDecodingProblem(error: unknown): string {
  return error instanceof TypeError ? 'an entry of a map has no value' : errorText(error);
}
