// Tests the connection beyond the pool to a Redis that stalls. batching.txt tests other cases of an empty pool.
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { pluck } from '../../support/pluck.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { openRedisStore, type RecordedRedisStore } from '../../support/redis-store.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

function start(store: RecordedRedisStore, key: string, deadlineMs = 30_000) {
  return countOn(store, [createHit({ key })], {
    deadlineMs: systemClock.monotonicMs() + deadlineMs,
  });
}

async function openStalled(
  t: { teardown(task: () => unknown): void },
  failureMode: 'error' | 'local' = 'error',
) {
  const redis = await startRedisServer(t);
  const proxy = await startTcpProxy(t, redis.port);
  const store = await openRedisStore(t, `127.0.0.1:${proxy.port}`, {
    size: 1,
    onEmpty: { behavior: 'create', waitMs: 100 },
    failureMode,
  });
  // A worker that can answer without the store does not wait for a server that is slow to accept.
  await eventually('the connection', () => store.connections.active === 1);
  proxy.inject({ kind: 'stall' });
  const busy = start(store, 'pool_');
  // Sent, so that the next request finds the pool empty.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return { proxy, store, busy };
}

// Proof of migrating.md: `KVSTORE_POOL_ON_EMPTY_BEHAVIOR` takes CREATE, the default, and ERROR
test.serial('CREATE: one connection is opened, and closed when it is not needed', async (t) => {
  const { proxy, store, busy } = await openStalled(t);
  const askedMs = performance.now();
  const waiting = Array.from({ length: 5 }, () => start(store, 'pool_'));
  await eventually('an overflow connection', () => proxy.accepted === 2);
  const openedMs = performance.now() - askedMs;
  t.true(openedMs >= 100, `${openedMs} ms`);
  proxy.heal();
  const outcomes = await Promise.all([busy, ...waiting]);
  t.deepEqual(
    pluck(outcomes, 'error'),
    outcomes.map(() => undefined),
  );
  t.deepEqual(outcomes.flatMap(({ after }) => after).sort(), [1, 2, 3, 4, 5, 6]);
  await eventually('only the pool is left', () => store.connections.active === 1);
  t.is(proxy.accepted, 2);
  t.is(store.connections.total - store.connections.localClose, 1);
  await store.close(0);
  t.is(store.connections.total, store.connections.localClose, 'none is left open');
});

test.serial('CREATE: its aborted attempt is not why the server counts as away', async (t) => {
  const { proxy, store, busy } = await openStalled(t, 'local');
  const waiting = start(store, 'pool_');
  await eventually('an attempt to open the overflow connection', () => proxy.accepted >= 2);
  const silent = `key-value store 127.0.0.1:${proxy.port}: no answer in 500 ms`;
  t.is((await busy).error?.message, silent);
  t.is((await waiting).error?.message, silent);
  t.is((await start(store, 'pool_')).error?.message, silent);
  t.false(store.state().detail.includes('given up'), store.state().detail);
});
