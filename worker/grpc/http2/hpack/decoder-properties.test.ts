// Tests the decoder against an encoder that uses all features of HPACK with the simplest possible table.
import test from 'ava';
import fc from 'fast-check';
import { drainTable, type Pair, sizeOf, toPairs } from '../../../../test/support/hpack-blocks.ts';
import { toHpackInteger, toHpackString } from '../../../../test/support/http2-frames.ts';
import { createHpackDecoder } from './decoder.ts';
import type { HeaderField } from './header-field.ts';
import { listHuffmanCodes } from './huffman-code.ts';
import { staticTable } from './static-table.ts';

type Kind = 'indexed' | 'added' | 'not added' | 'never added';

interface Step {
  readonly pair: Pair;
  readonly kind: Kind;
  /** Whether to refer to the name if it is in a table. */
  readonly indexesName: boolean;
  readonly huffman: boolean;
}

interface Block {
  readonly sizes: readonly number[];
  readonly steps: readonly Step[];
}

const huffmanCodes = listHuffmanCodes();

class ModelEncoder {
  /** Entries of the table, newest first. */
  table: Pair[] = [];
  maxSize = 4096;

  encode({ sizes, steps }: Block): Buffer {
    const octets: number[] = [];
    for (const size of sizes) {
      octets.push(...toHpackInteger(size, 5, 0x20));
      this.maxSize = size;
      this.#evict();
    }
    for (const step of steps) octets.push(...this.#encodeField(step));
    return Buffer.from(octets);
  }

  #encodeField({ pair, kind, indexesName, huffman }: Step): number[] {
    const known: Pair[] = [...toPairs(staticTable), ...this.table];
    const [name, value] = pair;
    const index = known.findIndex((entry) => entry[0] === name && entry[1] === value) + 1;
    if (kind === 'indexed' && index > 0) return [...toHpackInteger(index, 7, 0x80)];
    const nameIndex = indexesName ? known.findLastIndex((entry) => entry[0] === name) + 1 : 0;
    const strings = [...(nameIndex === 0 ? string(name, huffman) : []), ...string(value, huffman)];
    if (kind === 'not added') return [...toHpackInteger(nameIndex, 4, 0x00), ...strings];
    if (kind === 'never added') return [...toHpackInteger(nameIndex, 4, 0x10), ...strings];
    this.table.unshift(pair);
    this.#evict();
    return [...toHpackInteger(nameIndex, 6, 0x40), ...strings];
  }

  #evict(): void {
    while (sizeOf(this.table) > this.maxSize) this.table.pop();
  }
}

function string(text: string, huffman: boolean): number[] {
  if (!huffman) return [...toHpackString(text)];
  const bits = [...Buffer.from(text, 'latin1')]
    .map((octet) => huffmanCodes[octet])
    .map((code) => code?.bits.toString(2).padStart(code.length, '0'))
    .join('');
  const coded = (bits.match(/.{1,8}/g) ?? []).map((group) =>
    Number.parseInt(group.padEnd(8, '1'), 2),
  );
  return [...toHpackInteger(coded.length, 7, 0x80), ...coded];
}

const octetString = fc.string({
  unit: fc.oneof(
    fc.constantFrom('a', '0', '-'),
    fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
  ),
});
const header = fc.oneof(
  fc.tuple(fc.constantFrom('a', 'b', 'traceparent', ':path'), fc.constantFrom('', '1', '/a', '/b')),
  fc.constantFrom(...toPairs(staticTable)),
  fc.tuple(octetString, octetString),
  fc.tuple(
    fc.constantFrom('long', 'age'),
    fc.nat(3000).map((length) => 'v'.repeat(length)),
  ),
);
const block: fc.Arbitrary<Block> = fc.record({
  sizes: fc.oneof(
    { weight: 5, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fc.nat(4096), { maxLength: 2 }) },
  ),
  steps: fc.array(
    fc.record({
      pair: header,
      kind: fc.constantFrom<Kind>('indexed', 'indexed', 'added', 'not added', 'never added'),
      indexesName: fc.boolean(),
      huffman: fc.boolean(),
    }),
    { maxLength: 12 },
  ),
});

test('consecutive blocks decode to the encoded fields, and leave the same table', (t) => {
  fc.assert(
    fc.property(fc.array(block, { maxLength: 12 }), (blocks) => {
      const encoder = new ModelEncoder();
      const decoder = createHpackDecoder({ tableBytes: 4096, maxListBytes: 2 ** 20 });
      for (const each of blocks) {
        const bytes = encoder.encode(each);
        const fields: HeaderField[] = [];
        decoder.decode(bytes, 0, bytes.length, fields);
        t.deepEqual(
          toPairs(fields),
          each.steps.map(({ pair }) => pair),
        );
      }
      t.deepEqual(drainTable(decoder), encoder.table);
    }),
    { numRuns: 200 },
  );
});

test('the same octets have the same meaning as long as the generation is the same', (t) => {
  let repetitions = 0;
  fc.assert(
    fc.property(
      fc.array(block, { minLength: 1, maxLength: 6 }),
      fc.array(fc.nat(5), { minLength: 20, maxLength: 40 }),
      (blocks, order) => {
        const encoder = new ModelEncoder();
        const decoder = createHpackDecoder({ tableBytes: 4096, maxListBytes: 2 ** 20 });
        const sent = blocks.map((each) => encoder.encode(each));
        const meanings = new Map<Buffer, Pair[]>();
        for (const index of order) {
          const bytes = sent[index % sent.length] ?? Buffer.alloc(0);
          const { generation } = decoder;
          const fields: HeaderField[] = [];
          try {
            decoder.decode(bytes, 0, bytes.length, fields);
          } catch {
            // The table lacks an entry that this block refers to.
            return;
          }
          const meaning = toPairs(fields);
          if (decoder.generation !== generation) {
            meanings.clear();
            continue;
          }
          const before = meanings.get(bytes);
          if (before !== undefined) {
            repetitions += 1;
            t.deepEqual(meaning, before);
          }
          meanings.set(bytes, meaning);
        }
      },
    ),
  );
  t.true(repetitions > 0);
});
