// The Huffman code of RFC 7541, appendix B. huffman-decoder.ts reads it.

/** The symbol after the 256 octets. It ends no string: its appearance is an error (section 5.2). */
export const endOfString = 256;

/**
 * The length in bits of each octet's code, as base-32 digits, 32 octets to a row; the last digit is for the end of
 * string. The lengths are enough, since the code is canonical: codes of one length ascend with their symbols, and each
 * length continues where the shorter ones stopped.
 */
const lengthDigits =
  'dnsssssssoussussssssssusssssssss' +
  '6aacd68baa8b8666555666666678f6ca' +
  'd67777777777777777777777878djde6' +
  'f56565666577666567655677777fbeds' +
  'kmkkmmmnmnnnnnonoomnonnnnlmnmnno' +
  'mlkmmnnlnmmolmnnllmlnmnnkmmmnmmn' +
  'qqkjmnmpqqqrrqopjlqrrqrollqqsrrr' +
  'koklmllnmmppooqnqrqqrrrrrsrrrrrq' +
  'u';

const longest = 30;

export interface HuffmanCode {
  /** Right-aligned. */
  readonly bits: number;
  readonly length: number;
}

/** The codes, ordered by their symbols. */
export function listHuffmanCodes(): readonly HuffmanCode[] {
  const codes: HuffmanCode[] = [];
  const lengths = Array.from(lengthDigits, (digit) => Number.parseInt(digit, 32));
  let bits = 0;
  for (let length = 1; length <= longest; length++) {
    bits *= 2;
    for (let symbol = 0; symbol <= endOfString; symbol++) {
      if (lengths[symbol] === length) codes[symbol] = { bits: bits++, length };
    }
  }
  return codes;
}
