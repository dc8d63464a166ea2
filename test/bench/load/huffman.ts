// Encodes strings in HPACK's Huffman code (RFC 7541, section 5.2); the worker's engine never does.
import { listHuffmanCodes } from '../../../worker/grpc/http2/hpack/huffman-code.ts';

const huffmanCodes = listHuffmanCodes();

/** Includes the length prefix. */
export function encodeHuffmanString(text: string): Buffer {
  const bytes: number[] = [];
  let bits = 0;
  let bitCount = 0;
  for (const byte of Buffer.from(text, 'latin1')) {
    const code = huffmanCodes[byte];
    if (code === undefined || code.length > 16) throw new Error(`no short code for ${byte}`);
    bits = (bits << code.length) | code.bits;
    bitCount += code.length;
    while (bitCount >= 8) {
      bitCount -= 8;
      bytes.push((bits >>> bitCount) & 0xff);
    }
    bits &= (1 << bitCount) - 1;
  }
  // The last byte is padded with ones, the prefix of the end-of-string code.
  if (bitCount > 0) bytes.push(((bits << (8 - bitCount)) | (0xff >>> bitCount)) & 0xff);
  if (bytes.length >= 127) throw new Error('too long for a length of one byte');
  return Buffer.from([0x80 | bytes.length, ...bytes]);
}
