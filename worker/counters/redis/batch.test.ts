import test from 'ava';
import { createHit, type HitOptions, startCounting } from '../../../test/support/counting.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createOperationDeps } from '../../../test/support/operation-deps.ts';
import { Batch } from './batch.ts';
import type { RawReply } from './connection.ts';

/** Returns the function that makes a batch with a request for each hit. */
function setUp() {
  const deps = createOperationDeps(createManualClock());
  const settling = { settleIfLate: () => false, fail: () => {} };
  return (...hits: readonly HitOptions[]) => {
    const batch = new Batch(deps, settling);
    for (const hit of hits) {
      const { request } = startCounting([createHit(hit)]);
      batch.add({ request, arrivedMs: 0, failure: undefined, isSettled: false });
    }
    const commands = batch.start().map((text) => text.split('\r\n'));
    return { commands, receive: (...replies: RawReply[]) => batch.receive(replies) };
  };
}

test('consecutive requests with equally many hits on a limiter are one run of its script', (t) => {
  const limiter = {
    ...({ algorithm: 'token_bucket', limit: 10, capacity: 10, countsOver: false } as const),
    ...{ windowStart: 0, windowSeconds: 10, isEven: true },
  };
  const createBatch = setUp();
  const sizeOf = (...hits: readonly number[]) =>
    createBatch(...hits.map((each) => ({ key: 'k', hits: each, limiter }))).commands.join('')
      .length;
  t.is(sizeOf(1, 1, 1), sizeOf(1, 1));
  t.true(sizeOf(1, 2) > sizeOf(1, 1));
});

test('a lifetime is sent again after an increment whose answer was lost', (t) => {
  const createBatch = setUp();
  createBatch({ key: 'k' }).receive(1, 1);
  const { commands, receive } = createBatch({ key: 'k' });
  t.is(commands.length, 1);
  // The counter had expired meanwhile and was created again without a lifetime: the next answer is 2.
  receive(new Error('the connection was closed'));
  t.is(createBatch({ key: 'k' }).commands.length, 2);
});

test('a lifetime that overtook its increment is sent again, and is known once it is confirmed', (t) => {
  const createBatch = setUp();
  const { expires } = createBatch({ key: 'k' }).receive(1, 0);
  t.is(createBatch({ key: 'k' }).commands.length, 2);
  expires[0]?.confirmExpire();
  t.is(createBatch({ key: 'k' }).commands.length, 1);
});

test('a key shared by limits of several units lives for the longest, also when their hits arrive together', (t) => {
  const createBatch = setUp();
  const lifetimesOf = (...windows: readonly number[]) => {
    const hits = windows.map((windowSeconds) => ({ key: 'k', windowSeconds }));
    const { commands, receive } = createBatch(...hits);
    receive(...commands.map(([, , command]) => (command === 'EXPIRE' ? 1 : 100)));
    return commands.flatMap((parts) => (parts[2] === 'EXPIRE' ? [Number(parts[6])] : []));
  };
  t.deepEqual(lifetimesOf(60), [60]);
  t.deepEqual(lifetimesOf(60), []);
  t.deepEqual(lifetimesOf(60, 3_600, 60), [3_600]);
  t.deepEqual(lifetimesOf(60), []);
  t.deepEqual(lifetimesOf(86_400), [86_400]);
  t.deepEqual(lifetimesOf(3_600), []);
});
