import test from 'ava';
import { SharedTable } from './shared-table.ts';

function fill(table: SharedTable<string>, link: object, names: Iterable<string>) {
  for (const name of names) if (table.find(link, name) === undefined) table.add(link, name, name);
}
const names = (of: string, count: number) =>
  Array.from({ length: count }, (_, index) => `${of}${index}`);
const keysOf = (table: SharedTable<string>, of: string) =>
  [...table.entries()].filter(([key]) => key.startsWith(of)).map(([key]) => key);

test('one link alone may fill the table, and its further entries find no room', (t) => {
  const table = new SharedTable<string>(10);
  fill(table, {}, names('a', 15));
  t.deepEqual(keysOf(table, 'a'), names('a', 10));
});

test('a link that comes later takes its share from the one with the most, the oldest first', (t) => {
  const table = new SharedTable<string>(10);
  const [a, b] = [{}, {}];
  fill(table, a, names('a', 10));
  fill(table, b, names('b', 8));
  t.deepEqual(keysOf(table, 'a'), names('a', 10).slice(5));
  t.deepEqual(keysOf(table, 'b'), names('b', 5));
  fill(table, a, names('c', 8));
  t.deepEqual(keysOf(table, 'b'), names('b', 5));
});

test('an entry of many links counts for all of them, and is not lost to a few that flood', (t) => {
  const table = new SharedTable<string>(100);
  const fleet = names('w', 50).map(() => ({}));
  for (const link of fleet) fill(table, link, names('common', 40));
  for (let flood = 0; flood < 5; flood++) fill(table, {}, names(`flood${flood}-`, 100));
  t.is(keysOf(table, 'common').length, 40);
  t.is(keysOf(table, 'flood').length, 60);
});

test('entries of links that are gone make room first, unless another link has them too', (t) => {
  const table = new SharedTable<string>(10);
  const [gone, here, next] = [{}, {}, {}];
  fill(table, gone, names('x', 6));
  fill(table, here, names('h', 4));
  table.leave(gone);
  fill(table, here, ['x0']);
  fill(table, next, names('n', 5));
  t.deepEqual(keysOf(table, 'x'), ['x0']);
  t.is(keysOf(table, 'h').length, 4);
  t.is(keysOf(table, 'n').length, 5);
});

test('the bound holds with more links than places', (t) => {
  const table = new SharedTable<string>(10);
  for (const [index, link] of names('l', 100)
    .map(() => ({}))
    .entries()) {
    fill(table, link, names(`l${index}-`, 3));
    if (index % 3 === 0) table.leave(link);
    t.true([...table.entries()].length <= 10);
  }
});
