import test from 'ava';
import { createHit, startCounting } from '../../../test/support/counting.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { Batch } from './batch.ts';
import { createKnownExpiries } from './known-expiries.ts';
import { createScriptSupport } from './script-support.ts';

const createDeps = () => ({
  name: 'store',
  knownExpiries: createKnownExpiries(),
  scripts: createScriptSupport('store', 'REDIS_URL', createRecordedLog()),
  clock: createManualClock(),
  jitterMaxSeconds: 0,
});

test('requests that follow each other with as many hits on a limiter are one run of its script', (t) => {
  const limiter = {
    ...({ algorithm: 'token_bucket', limit: 10, capacity: 10, countsOver: false } as const),
    ...{ windowStart: 0, windowSeconds: 10, isEven: true },
  };
  const sizeOf = (...hits: readonly number[]) => {
    const batch = new Batch(createDeps(), undefined);
    for (const each of hits)
      batch.add(startCounting([createHit({ key: 'k', hits: each, limiter })]).request);
    return batch.toCommands().join('').length;
  };
  t.is(sizeOf(1, 1, 1), sizeOf(1, 1));
  t.true(sizeOf(1, 2) > sizeOf(1, 1));
});

test('a lifetime is sent again after an increment whose answer was lost', (t) => {
  const deps = createDeps();
  const createBatch = () => {
    const batch = new Batch(deps, undefined);
    batch.add(startCounting([createHit({ key: 'k' })]).request);
    return { batch, commands: batch.toCommands() };
  };
  createBatch().batch.take([1, 1]);
  const { batch, commands } = createBatch();
  t.is(commands.length, 1);
  // The counter had gone meanwhile, and was made anew without a lifetime: the next answer is 2.
  batch.take([new Error('the connection was closed')]);
  t.is(createBatch().commands.length, 2);
});
