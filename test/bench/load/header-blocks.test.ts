import test from 'ava';
import { createHeaderBlocks, maxBlockLength } from './header-blocks.ts';
import { encodeHuffmanString } from './huffman.ts';

const options = { isTls: false, timeoutMs: 2_000, hasTrace: false };

test('a string in Huffman code is that of the example in RFC 7541, C.4.1', (t) => {
  const coded = encodeHuffmanString('www.example.com');
  t.is(coded.toString('hex'), '8cf1e3c2e5f23a6ba0ab90f4ff');
});

test('from the second request on, all headers but the path are one byte each', (t) => {
  const blocks = createHeaderBlocks(options);
  const block = Buffer.alloc(maxBlockLength);
  t.is(blocks.constantBlock(), undefined);
  const first = blocks.append(block, 0);
  const second = block.subarray(0, blocks.append(block, 0));
  t.true(second.length < first);
  t.deepEqual(blocks.constantBlock(), Buffer.from(second));
  // :method, then :path as a literal; te and all that follow from the dynamic table, newest first.
  t.is(second[0], 0x83);
  t.is(second[1], 0x04);
  t.deepEqual([...second.subarray(-7)], [0xc3, 0x86, 0xc2, 0xc1, 0xc0, 0xbf, 0xbe]);
});

test('trace headers are new each time and push the others out of the table in the end', (t) => {
  const blocks = createHeaderBlocks({ ...options, hasTrace: true });
  const lengths: number[] = [];
  const seen = new Set<string>();
  for (let request = 0; request < 30; request++) {
    const block = Buffer.alloc(maxBlockLength);
    const length = blocks.append(block, 0);
    lengths.push(length);
    seen.add(block.subarray(0, length).toString('hex'));
  }
  t.is(seen.size, 30);
  t.is(blocks.constantBlock(), undefined);
  const usual = lengths[1] ?? 0;
  t.true((lengths[0] ?? 0) > usual + 50);
  // Entered again somewhere in between.
  t.true(lengths.slice(2).some((length) => length > usual + 30));
});

test('a smaller table of the peer is acknowledged in the next block, and nothing is entered in one of 0', (t) => {
  const blocks = createHeaderBlocks(options);
  const block = Buffer.alloc(maxBlockLength);
  blocks.append(block, 0);
  blocks.setTableSize(0);
  blocks.append(block, 0);
  t.is(block[0], 0x20);
  const third = blocks.append(block, 0);
  t.is(block[0], 0x83);
  t.is(blocks.append(block, 0), third);
  t.is(blocks.constantBlock(), undefined);
});
