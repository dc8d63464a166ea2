import test from 'ava';
import fc from 'fast-check';
import {
  createDecoder,
  drainTable,
  type Pair,
  toPairs,
} from '../../../../test/support/hpack-blocks.ts';
import { encodeHeaderBlock } from './encoder.ts';
import type { HeaderField } from './header-field.ts';
import { staticTable } from './static-table.ts';

function encodeToHex(fields: readonly Pair[]): string {
  return encodeHeaderBlock(fields).toString('hex');
}

test('a field of the static table is encoded as its index', (t) => {
  for (const [position, { name, value }] of staticTable.entries())
    t.is(encodeToHex([[name, value]]), (0x80 | (position + 1)).toString(16));
});

test('a name in the table with another value is encoded with the first index of the name', (t) => {
  t.is(encodeToHex([[':status', '503']]), '0803353033');
  // The index 31 exceeds a prefix of four bits.
  t.is(encodeToHex([['content-type', 'a']]), '0f100161');
});

test('a field with an unlisted name is a literal that is not added to the table', (t) => {
  t.is(encodeToHex([['te', 'x']]), '000274650178');
  t.is(encodeToHex([['x', '']]), '00017800');
});

test('without fields there are no octets', (t) => {
  t.is(encodeToHex([]), '');
});

test('a string of 127 octets and more has a length of several octets', (t) => {
  for (const [length, prefix] of [
    [126, '7e'],
    [127, '7f00'],
    [128, '7f01'],
    [127 + 128, '7f8001'],
    [127 + 16_384, '7f808001'],
  ] as const) {
    t.is(encodeToHex([['x', 'a'.repeat(length)]]), `000178${prefix}${'61'.repeat(length)}`);
  }
});

const octets = fc.string({
  unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code)),
});
const name = fc.oneof(octets, fc.constantFrom(...staticTable.map((entry) => entry.name)));
const value = fc.oneof(octets, fc.constantFrom(...staticTable.map((entry) => entry.value)));

test('all encoded fields decode to the same, and leave the table empty', (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(name, value)), (pairs) => {
      const block = encodeHeaderBlock(pairs);
      const decoder = createDecoder();
      const fields: HeaderField[] = [];
      decoder.decode(block, 0, block.length, fields);
      t.deepEqual(toPairs(fields), pairs);
      t.deepEqual(drainTable(decoder), []);
    }),
  );
});
