// Bytes to text, strictly.
import { BadRequest } from './errors.ts';

/** Throws 400 for bytes that are not UTF-8, and for NUL. */
export function decodeUtf8(bytes: Uint8Array): string {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new BadRequest('the body is not UTF-8');
  }
  if (text.includes('\0')) throw new BadRequest('the body holds a NUL character');
  return text;
}
