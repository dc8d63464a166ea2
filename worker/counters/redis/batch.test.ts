import test from 'ava';
import { createHit, startCounting } from '../../../test/support/counting.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import { Batch } from './batch.ts';
import { ReplyError } from './connection.ts';
import { createScriptSupport } from './script-support.ts';

const createDeps = () => ({
  name: 'store',
  knownExpiries: createKnownExpiries(),
  scripts: createScriptSupport('store', 'REDIS_URL', createRecordedLog()),
  clock: createManualClock(),
  jitterMaxSeconds: 0,
  describeRemedy: () => 'write a password',
});

test('consecutive requests with equally many hits on a limiter are one run of its script', (t) => {
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
  // The counter had expired meanwhile and was created again without a lifetime: the next answer is 2.
  batch.take([new Error('the connection was closed')]);
  t.is(createBatch().commands.length, 2);
});

test('a lifetime that overtook its increment is sent again, and is known once it is confirmed', (t) => {
  const deps = createDeps();
  const createBatch = () => {
    const batch = new Batch(deps, undefined);
    batch.add(startCounting([createHit({ key: 'k', windowSeconds: 60 })]).request);
    return { batch, commands: batch.toCommands() };
  };
  const { batch } = createBatch();
  const { expiries } = batch.take([1, 0]);
  t.deepEqual(
    expiries?.commands.map((text) => text.split('\r\n')[2]),
    ['EXPIRE'],
  );
  if (expiries !== undefined) batch.confirm(expiries, [1]);
  t.is(createBatch().commands.length, 1);
});

test('a key shared by limits of several units lives for the longest, also when their hits arrive together', (t) => {
  const deps = createDeps();
  const lifetimesOf = (...windows: readonly number[]) => {
    const batch = new Batch(deps, undefined);
    for (const windowSeconds of windows) {
      batch.add(startCounting([createHit({ key: 'k', windowSeconds })]).request);
    }
    const commands = batch.toCommands().map((text) => text.split('\r\n'));
    batch.take(commands.map(([, , command]) => (command === 'EXPIRE' ? 1 : 100)));
    return commands.flatMap((parts) => (parts[2] === 'EXPIRE' ? [Number(parts[6])] : []));
  };
  t.deepEqual(lifetimesOf(60), [60]);
  t.deepEqual(lifetimesOf(60), []);
  t.deepEqual(lifetimesOf(60, 3_600, 60), [3_600]);
  t.deepEqual(lifetimesOf(60), []);
  t.deepEqual(lifetimesOf(86_400), [86_400]);
  t.deepEqual(lifetimesOf(3_600), []);
});

test('a refusal is reported with its remedy', (t) => {
  const batch = new Batch(createDeps(), undefined);
  batch.add(startCounting([createHit({ key: 'k' })]).request);
  batch.toCommands();
  batch.take([new ReplyError('NOAUTH Authentication required.'), 1]);
  t.is(batch.complete(0)?.message, 'store: NOAUTH Authentication required; write a password');
});
