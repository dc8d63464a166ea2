// The Huffman code of HPACK (RFC 7541, Appendix B) for printable characters, which are all that the
// headers of these calls hold. The code is canonical, so the characters in order are the whole table.

/** By length of the code in bits, in ascending order of the code. */
const charactersByLength: ReadonlyMap<number, string> = new Map([
  [5, '012aceiost'],
  [6, ' %-./3456789=A_bdfghlmnpru'],
  [7, ':BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz'],
  [8, '&*,;XZ'],
  [10, '!"()?'],
  [11, "'+|"],
  [12, '#>'],
  [13, '\0$@[]~'],
  [14, '^}'],
  [15, '<`{'],
]);
const longest = 15;

export const huffmanCodes = new Uint16Array(128);
/** In bits; 0 where there is no code in this table. */
export const huffmanLengths = new Uint8Array(128);
const characterByCode = new Map<number, number>();

let code = 0;
for (let length = 5; length <= longest; length++) {
  for (const character of charactersByLength.get(length) ?? '') {
    const byte = character.charCodeAt(0);
    huffmanCodes[byte] = code;
    huffmanLengths[byte] = length;
    characterByCode.set((length << 16) | code, byte);
    code++;
  }
  code <<= 1;
}

/** A string as HPACK writes it, with its length (RFC 7541, section 5.2). */
export function encodeHuffmanString(text: string): Buffer {
  const bytes: number[] = [];
  let bits = 0;
  let held = 0;
  for (const byte of Buffer.from(text, 'latin1')) {
    const length = huffmanLengths[byte] ?? 0;
    if (length === 0) throw new Error(`no Huffman code for character ${byte}`);
    bits = (bits << length) | (huffmanCodes[byte] ?? 0);
    held += length;
    while (held >= 8) {
      held -= 8;
      bytes.push((bits >>> held) & 0xff);
    }
    bits &= (1 << held) - 1;
  }
  // The rest of the last byte is filled with ones, the beginning of a code that ends the string.
  if (held > 0) bytes.push(((bits << (8 - held)) | (0xff >>> held)) & 0xff);
  if (bytes.length >= 127) throw new Error('too long for a length of one byte');
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}

export function decodeHuffman(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let held = 0;
  for (const byte of bytes) {
    for (let bit = 7; bit >= 0; bit--) {
      bits = (bits << 1) | ((byte >>> bit) & 1);
      held++;
      const character = characterByCode.get((held << 16) | bits);
      if (character !== undefined) {
        text += String.fromCharCode(character);
        bits = 0;
        held = 0;
      } else if (held > longest) {
        throw new Error('a header with a character that is not printable');
      }
    }
  }
  return text;
}
