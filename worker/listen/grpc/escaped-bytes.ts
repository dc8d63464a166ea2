// The text of bytes that are not UTF-8: each byte that is not part of a character is written as `\xNN`, as logs and the
// tools of stores show it. The rest is unchanged, so that different bytes have different counters.

const backslash = 0x5c;
const x = 0x78;
const digits = Buffer.from('0123456789abcdef');

export function escapeInvalidUtf8(bytes: Uint8Array): string {
  const escaped = Buffer.allocUnsafe(bytes.length * 4);
  let length = 0;
  for (let index = 0; index < bytes.length; ) {
    const size = sizeOfCharacter(bytes, index);
    if (size === 0) {
      const byte = bytes[index++] as number;
      escaped[length++] = backslash;
      escaped[length++] = x;
      escaped[length++] = digits[byte >> 4] as number;
      escaped[length++] = digits[byte & 0xf] as number;
    }
    for (const end = index + size; index < end; index++) escaped[length++] = bytes[index] as number;
  }
  return escaped.toString('utf8', 0, length);
}

/** The number of bytes of the character that begins here; 0 if none does (RFC 3629, section 4). */
function sizeOfCharacter(bytes: Uint8Array, at: number): number {
  const first = bytes[at] as number;
  if (first < 0x80) return 1;
  const size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size === 0 || at + size > bytes.length) return 0;
  const second = bytes[at + 1] as number;
  // Excludes overlong forms, surrogates, and numbers above the last character.
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
  const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
  if (second < least || second > most) return 0;
  for (let index = at + 2; index < at + size; index++) {
    if (((bytes[index] as number) & 0xc0) !== 0x80) return 0;
  }
  return size;
}
