import test from 'ava';
import { createManualClock } from '../test/support/manual-clock.ts';
import { repeatAfter } from './clock.ts';

test('a task is repeated after each run ends, until the repetition is stopped', async (t) => {
  const clock = createManualClock();
  const runs: PromiseWithResolvers<void>[] = [];
  const stop = repeatAfter(clock, 1000, () => {
    const run = Promise.withResolvers<void>();
    runs.push(run);
    return run.promise;
  });
  clock.advance(5000);
  t.is(runs.length, 1, 'the first run is under way');
  runs[0]?.resolve();
  await runs[0]?.promise;
  await Promise.resolve();
  clock.advance(1000);
  t.is(runs.length, 2);
  stop();
  runs[1]?.resolve();
  await runs[1]?.promise;
  await Promise.resolve();
  t.is(clock.pending, 0);
});

test('a task that ends at once is repeated at regular times', (t) => {
  const clock = createManualClock();
  let runs = 0;
  const stop = repeatAfter(clock, 1000, () => {
    runs++;
  });
  clock.advance(3500);
  t.is(runs, 3);
  stop();
  clock.advance(3500);
  t.is(runs, 3);
});
