import { createHash } from 'node:crypto';
import test from 'ava';
import { staticTable } from './static-table.ts';

test('the static table is the one of appendix A', (t) => {
  const lines = staticTable.map(({ name, value }) => `${name}: ${value}\n`);
  t.is(lines.length, 61);
  // The digest of the appendix, written with one field per line.
  t.is(
    createHash('sha256').update(lines.join('')).digest('hex'),
    'e068ed84a5a3d28824dc910d55e700af8236a5744b77f384fb67b7f06b72fbb3',
  );
});

test('an entry counts for its octets and 32 more', (t) => {
  t.is(staticTable[0]?.size, 42);
  t.is(staticTable[15]?.size, 60);
});
