import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { ownTurn, runInSlices } from './in-slices.ts';

function burn(ms: number): void {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs);
}

/** Returns the number of steps in each turn of the event loop. */
async function countByTurn(start: (step: () => void) => Promise<unknown>[]): Promise<number[]> {
  const counts = [0];
  const step = () => {
    counts.push((counts.pop() ?? 0) + 1);
  };
  let isOver = false;
  const counting = (async () => {
    while (!isOver) {
      await setImmediate();
      counts.push(0);
    }
  })();
  await Promise.all(start(step));
  isOver = true;
  await counting;
  return counts.filter((count) => count > 0);
}

function* work(step: () => void, steps: number): Generator<void, number> {
  for (let at = 0; at < steps; at++) {
    step();
    yield;
  }
  return steps;
}

test.serial('work at the same time shares one slice for each turn of the event loop', async (t) => {
  const counts = await countByTurn((step) =>
    Array.from({ length: 20 }, () =>
      runInSlices(
        work(() => {
          burn(0.1);
          step();
        }, 30),
      ),
    ),
  );
  // One step of each work, and in the first turn the slices of the work that ran alone for a moment.
  t.true(Math.max(...counts.slice(1)) <= 20, `${counts}`);
  t.true((counts[0] ?? 0) <= 60, `${counts}`);
});

test.serial('work that fails makes room for the others', async (t) => {
  const fail = () => {
    throw new Error('it fails');
  };
  const all = Array.from({ length: 1_000 }, () => runInSlices(work(fail, 1)));
  await Promise.allSettled(all);
  const counts = await countByTurn((step) => [runInSlices(work(step, 200))]);
  // With a thousandth of the slice it would be one step a turn.
  t.true(counts.length < 100, `${counts}`);
});

test('a step that may take longer than a slice has a turn of the event loop for itself', async (t) => {
  const counts = await countByTurn((step) =>
    Array.from({ length: 20 }, async () => {
      await ownTurn();
      step();
    }),
  );
  t.deepEqual(
    counts,
    counts.map(() => 1),
  );
});
