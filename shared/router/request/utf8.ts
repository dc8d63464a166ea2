// Bytes to text, strictly.
import { BadRequest } from '../errors.ts';

/** Creating a decoder costs more than decoding most bodies. */
const decoder = new TextDecoder('utf-8', { fatal: true });

/** Throws 400 for bytes that are not UTF-8, and for NUL. */
export function decodeUtf8(bytes: Uint8Array): string {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    throw new BadRequest('the body is not UTF-8');
  }
  refuseNul(text);
  return text;
}

/** Throws 400 for replacement characters, which stand for bytes that are not UTF-8, and for NUL. */
export function refuseRepaired(text: string): void {
  if (text.includes('\ufffd')) throw new BadRequest('the body is not UTF-8');
  refuseNul(text);
}

function refuseNul(text: string): void {
  if (text.includes('\0')) throw new BadRequest('the body holds a NUL character');
}
