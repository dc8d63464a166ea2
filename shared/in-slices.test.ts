import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { beginSlice, runInSlices } from './in-slices.ts';

function burnSlice(): void {
  const endMs = performance.now() + 1.1;
  while (performance.now() < endMs);
}

/** Steps that each take longer than a slice, and how many of all are done in each turn of the event loop. */
async function countByTurn(start: (step: () => void) => Promise<unknown>[]): Promise<number[]> {
  const counts = [0];
  const step = () => {
    counts.push((counts.pop() ?? 0) + 1);
    burnSlice();
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

test.serial(
  'of what is begun together one slice is done in a turn of the event loop',
  async (t) => {
    const counts = await countByTurn((step) =>
      Array.from({ length: 20 }, () => runInSlices(work(step, 3))),
    );
    t.is(Math.max(...counts), 1);
    t.is(counts.length, 60);
  },
);

test.serial('work that is no generator has its turn among others', async (t) => {
  const counts = await countByTurn((step) => [
    runInSlices(work(step, 3)),
    ...Array.from({ length: 10 }, async () => {
      await beginSlice();
      step();
    }),
  ]);
  t.is(Math.max(...counts), 1);
});

test.serial(
  'no more than eight are begun and not ended, and one that fails makes room',
  async (t) => {
    let [begun, most] = [0, 0];
    function* counted(number: number): Generator<void, void> {
      most = Math.max(most, ++begun);
      yield* work(burnSlice, 3);
      begun--;
      if (number % 2 === 0) throw new Error('even');
    }
    const all = Array.from({ length: 40 }, (_, number) => runInSlices(counted(number)));
    const results = await Promise.allSettled(all);
    t.is(results.filter(({ status }) => status === 'fulfilled').length, 20);
    t.true(most <= 8, `${most}`);
    t.is(begun, 0);
  },
);
