// The pool of connections to a Redis that stalls, and what the gauges and the closing of read-only
// connections make of it.
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
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
  behavior: 'create' | 'error' | 'wait',
  failureMode: 'error' | 'local' = 'error',
) {
  const redis = await startRedisServer(t);
  const proxy = await startTcpProxy(t, redis.port);
  const store = await openRedisStore(t, `127.0.0.1:${proxy.port}`, {
    size: 1,
    onEmpty: { behavior, waitMs: 100 },
    failureMode,
  });
  // Who has answers without the store does not wait for a server that is slow to accept.
  await eventually('the connection', () => store.connections.active === 1);
  proxy.inject({ kind: 'stall' });
  const busy = start(store, 'pool_');
  // Sent, so that the next one finds the pool empty.
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  return { redis, proxy, store, busy };
}

// Proof of migrating.md: `KVSTORE_POOL_ON_EMPTY_BEHAVIOR` takes CREATE, the default, and ERROR
test.serial('ERROR: a decision fails when it has waited, and those in flight stay', async (t) => {
  const { redis, proxy, store, busy } = await openStalled(t, 'error');
  const { error, tookMs } = await start(store, 'pool_');
  t.is(
    error?.message,
    `key-value store 127.0.0.1:${proxy.port}: no connection was free for 100 ms`,
  );
  t.true(tookMs >= 100, `${tookMs} ms`);
  proxy.heal();
  t.deepEqual((await busy).after, [1]);
  t.deepEqual((await start(store, 'pool_')).after, [2]);
  t.is(await redis.command('GET', 'pool_'), '2');
  t.is(store.connections.total, 1);
});

test.serial('CREATE: one connection is opened, and closed when it is not needed', async (t) => {
  const { proxy, store, busy } = await openStalled(t, 'create');
  const askedMs = performance.now();
  const waiting = Array.from({ length: 5 }, () => start(store, 'pool_'));
  await eventually('an overflow connection', () => proxy.accepted === 2);
  const openedMs = performance.now() - askedMs;
  t.true(openedMs >= 100, `${openedMs} ms`);
  proxy.heal();
  const outcomes = await Promise.all([busy, ...waiting]);
  t.deepEqual(
    outcomes.map(({ error }) => error),
    outcomes.map(() => undefined),
  );
  t.deepEqual(outcomes.flatMap(({ after }) => after).sort(), [1, 2, 3, 4, 5, 6]);
  await eventually('only the pool is left', () => store.connections.active === 1);
  t.is(proxy.accepted, 2);
  t.is(store.connections.total - store.connections.localClose, 1);
});

test.serial('CREATE: giving its attempt up with the server is not why that is away', async (t) => {
  const { proxy, store, busy } = await openStalled(t, 'create', 'local');
  const waiting = start(store, 'pool_');
  await eventually('an attempt to open the overflow connection', () => proxy.accepted >= 2);
  const silent = `key-value store 127.0.0.1:${proxy.port}: no answer in 500 ms`;
  t.is((await busy).error?.message, silent);
  t.is((await waiting).error?.message, silent);
  t.is((await start(store, 'pool_')).error?.message, silent);
  t.false(store.state().detail.includes('given up'), store.state().detail);
});

test.serial('WAIT: a decision waits to its deadline', async (t) => {
  const { proxy, store, busy } = await openStalled(t, 'wait');
  // The deadline is counted from before the request.
  const askedMs = performance.now();
  const { error } = await start(store, 'pool_', 400);
  const tookMs = performance.now() - askedMs;
  t.regex(error?.message ?? '', /the deadline passed before the hits were sent$/);
  t.true(tookMs >= 400, `${tookMs} ms`);
  t.is(proxy.accepted, 1);
  proxy.heal();
  t.is((await busy).error, undefined);
});

test.serial('while connections are stuck, later decisions go over the others', async (t) => {
  const redis = await startRedisServer(t);
  const store = await openRedisStore(t, redis.url, { size: 4, timeoutMs: 60_000 });
  await eventually('all connections', () => store.connections.active === 4);
  // Suspends who writes to a key, as a connection that is stuck would.
  await redis.command('CLIENT', 'PAUSE', 60_000, 'WRITE');
  const stuck: Promise<unknown>[] = [];
  for (let i = 0; i < 3; i++) {
    stuck.push(start(store, `stuck_${i}`));
    await eventually('it is blocked', async () =>
      new RegExp(`blocked_clients:${i + 1}`).test(String(await redis.command('INFO', 'clients'))),
    );
  }
  await redis.command('CLIENT', 'UNPAUSE');
  t.is((await Promise.all(stuck)).length, 3);
});

for (const closes of [true, false]) {
  const what = closes ? 'closed, and the next one finds the new master' : 'kept';
  test.serial(`a connection on which a write was refused as read-only is ${what}`, async (t) => {
    const redis = await startRedisServer(t);
    const store = await openRedisStore(t, redis.url, { size: 1, closeOnReadonlyError: closes });
    await start(store, 'master_');
    await redis.command('REPLICAOF', '127.0.0.1', 1);
    t.regex((await start(store, 'master_')).error?.message ?? '', /READONLY You can't write/);
    if (closes) {
      await eventually('the next connection', () => store.connections.total === 2);
      t.is(store.connections.localClose, 1);
    }
    await redis.command('REPLICAOF', 'NO', 'ONE');
    t.is((await start(store, 'master_')).error, undefined);
    t.is(store.connections.total, closes ? 2 : 1);
  });
}
