// Tests the table while its entries grow in number and shrink again.
import test from 'ava';
import { createRandom } from '../../test/support/random.ts';
import { fullSize, TextEntry, TextTable } from './text-table.ts';

class Item extends TextEntry<Item> {}

test('a table equals a map while it grows beyond the size of one part and shrinks again', (t) => {
  const random = createRandom(7);
  const table = new TextTable<Item>();
  const model = new Map<string, Item>();
  // Twice as many entries are added as removed, then the opposite.
  for (const chance of [0.67, 0.33, 0.67, 0.2]) {
    for (let step = 0; step < 150_000; step++) {
      const key = `key ${random.below(120_000)}`;
      const known = model.get(key);
      if (table.get(key) !== known) return t.fail(`${key} is another entry after ${step} steps`);
      if (known === undefined && random.chance(chance)) {
        const item = new Item(key);
        table.add(item);
        model.set(key, item);
      } else if (known !== undefined && !random.chance(chance)) {
        table.delete(known);
        model.delete(key);
      }
    }
    t.is(table.size, model.size);
  }
  for (const item of model.values()) table.delete(item);
  t.is(table.size, 0);
});

test('an entry removed while the others move is no longer in the table', (t) => {
  const table = new TextTable<Item>();
  const items = Array.from({ length: 40_000 }, (_, index) => new Item(`key ${index}`));
  for (const item of items) table.add(item);
  for (const item of items.slice(32_000, 33_000)) table.delete(item);
  t.is(table.size, 39_000);
  t.is(table.get('key 32500'), undefined);
  for (const item of items.slice(0, 32_000)) table.delete(item);
  for (const item of items.slice(33_000)) t.is(table.get(item.key), item);
});

test('each added entry moves four others into one of many maps, none of which becomes large', (t) => {
  const table = new TextTable<Item>();
  const items = Array.from({ length: 300_000 }, (_, index) => new Item(`key ${index}`));
  let moved = 0;
  for (const [index, item] of items.entries()) {
    table.add(item);
    const before = moved;
    while (moved < fullSize && items[moved]?.part !== undefined) moved++;
    if (moved - before > 4) return t.fail(`entry ${index} places ${moved - before}`);
  }
  t.is(moved, fullSize);
  const sizes = new Set(items.map(({ part }) => part?.size ?? items.length));
  const largest = Math.max(...sizes);
  t.true(largest < fullSize, `a map of ${largest}`);
});
