import test from 'ava';
import fc from 'fast-check';
import type { Stream } from './stream.ts';
import { StreamTable } from './stream-table.ts';

/** A stream with those fields that a table reads. */
function streamOf(id: number, deadlineMs?: number): Stream {
  return { id, deadlineMs } as Stream;
}

test('any sequence of additions and removals has the same result as in a map', (t) => {
  const steps = fc.array(fc.tuple(fc.boolean(), fc.nat(400), fc.boolean()), { maxLength: 600 });
  fc.assert(
    fc.property(steps, (changes) => {
      const table = new StreamTable();
      const model = new Map<number, Stream>();
      let nextId = 1;
      for (const [comes, which, hasDeadline] of changes) {
        if (comes) {
          // Callers may skip numbers.
          nextId += 2 * (which % 3);
          const stream = streamOf(nextId, hasDeadline ? 1 : undefined);
          nextId += 2;
          table.add(stream);
          model.set(stream.id, stream);
        } else {
          const stream = [...model.values()][which % Math.max(1, model.size)] ?? streamOf(nextId);
          t.is(table.delete(stream), model.delete(stream.id));
        }
        t.is(table.size, model.size);
        for (const id of [nextId, nextId - 2, which]) t.is(table.get(id), model.get(id));
      }
      const listed = table.list().sort((one, other) => one.id - other.id);
      t.deepEqual(listed, [...model.values()]);
      const late = [...model.values()].filter(({ deadlineMs }) => deadlineMs !== undefined);
      t.is(table.deadlines, late.length);
    }),
  );
});

test('calls that stay open while thousands are opened and closed are found', (t) => {
  const table = new StreamTable();
  const staying = [1, 2049, 4097, 6145].map((id) => streamOf(id));
  for (let id = 1; id < 10_000; id += 2) {
    const stream = staying.find((one) => one.id === id) ?? streamOf(id);
    table.add(stream);
    if (!staying.includes(stream)) t.true(table.delete(stream));
  }
  for (const stream of staying) t.is(table.get(stream.id), stream);
  t.is(table.size, staying.length);
});
