// Strings as HPACK writes them in Huffman code (RFC 7541, section 5.2): those of the worker's engine are not.
import { listHuffmanCodes } from '../../../worker/grpc/http2/hpack/huffman-code.ts';

const huffmanCodes = listHuffmanCodes();

/** With its length before it. */
export function encodeHuffmanString(text: string): Buffer {
  const bytes: number[] = [];
  let bits = 0;
  let held = 0;
  for (const byte of Buffer.from(text, 'latin1')) {
    const code = huffmanCodes[byte];
    if (code === undefined || code.length > 16) throw new Error(`no short code for ${byte}`);
    bits = (bits << code.length) | code.bits;
    held += code.length;
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
