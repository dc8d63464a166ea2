import { createHash } from 'node:crypto';
import test from 'ava';
import { listHuffmanCodes } from './huffman-code.ts';

test('the codes are those of appendix B', (t) => {
  const lines = listHuffmanCodes().map(
    ({ bits, length }) => `${bits.toString(2).padStart(length, '0')}\n`,
  );
  t.deepEqual(lines.length, 257);
  t.is(lines[256], `${'1'.repeat(30)}\n`, 'the end of string');
  // The digest of the appendix, written with one code per line.
  t.is(
    createHash('sha256').update(lines.join('')).digest('hex'),
    '1562e6130a3910728d573a0061e46e3c79fab61b9d3209408c189bd96f8c07bd',
  );
});
