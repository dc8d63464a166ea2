// Tests a Redis whose user has a cloud token as a password: later connections use a later token.
import test, { type ExecutionContext } from 'ava';
import { toRedisStoreOptions } from '../../../worker/counters/redis/redis-options.ts';
import type { CounterStore } from '../../../worker/counters/store.ts';
import { parseWorkerSettings } from '../../../worker/settings.ts';
import { countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock, type ManualClock } from '../../support/manual-clock.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { openRedisStore } from '../../support/redis-store.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

// Where a token's signer first reads the credentials of this process.
process.env['AWS_ACCESS_KEY_ID'] = 'AKID';
process.env['AWS_SECRET_ACCESS_KEY'] = 'secret';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** The store with these settings, on a server that accepts any token and records it. */
async function setUp(t: ExecutionContext, which: 'store' | 'perSecondStore', clock: ManualClock) {
  const redis = await startRedisServer(t);
  await redis.command('ACL', 'SETUSER', 'limits', 'on', 'nopass', '~*', '+@all');
  let received = '';
  const proxy = await startTcpProxy(t, redis.port, {
    onRequest: (chunk) => {
      received += chunk.toString('latin1');
    },
  });
  const url = `127.0.0.1:${proxy.port}`;
  const settings = parseWorkerSettings({
    KVSTORE_URL: url,
    KVSTORE_CLOUDIAM_AUTH: 'true',
    KVSTORE_CLOUDIAM_CACHE_NAME: 'orders',
    KVSTORE_CLOUDIAM_USER_ID: 'limits',
    KVSTORE_CLOUDIAM_REGION: 'eu-west-1',
    KVSTORE_PERSECOND: 'true',
    KVSTORE_PERSECOND_URL: url,
  });
  if (!settings.ok) throw new Error(settings.problems.join('\n'));
  const { readCredentials, pool } = toRedisStoreOptions(settings.settings, which, clock);
  const store = await openRedisStore(t, url, { ...pool, size: 2, readCredentials, clock });
  const { connections } = store;
  await eventually('both connections', () => connections.active === 2);
  return {
    store,
    connections,
    drop: async () => {
      const { total } = connections;
      proxy.dropAll();
      await eventually('new connections', () => connections.total === total + 2);
    },
    /** The times of the tokens that were sent, in order. */
    listTokens: () => [...received.matchAll(/&X-Amz-Date=(\w+)/g)].map(([, date = '']) => date),
    received: () => received,
  };
}

async function count(store: CounterStore, clock: ManualClock): Promise<number | undefined> {
  const { error, after } = await countOn(store, [createHit({ key: 'timed_' })], {
    deadlineMs: clock.monotonicMs() + minuteMs,
  });
  return error === undefined ? after[0] : undefined;
}

test('tokens are shared for ten minutes, and connections replaced before twelve hours', async (t) => {
  const clock = createManualClock(Date.parse('2026-03-04T05:06:07Z'));
  const { store, connections, drop, listTokens } = await setUp(t, 'store', clock);
  const [first, second] = ['20260304T050607Z', '20260304T051607Z'];
  t.deepEqual(listTokens(), [first, first]);
  clock.advance(10 * minuteMs - 1);
  await drop();
  t.deepEqual(listTokens().slice(2), [first, first]);
  // Open connections stay open when their token expires.
  clock.advance(1);
  t.is(await count(store, clock), 1);
  t.is(connections.total, 4);
  await drop();
  t.deepEqual(listTokens().slice(4), [second, second]);
  clock.advance(10 * hourMs);
  t.is(connections.total, 6);
  // Each at a different time, so that they are not all closed at once, and none later than the provider's twelve hours.
  for (let second = 0; second < 1.5 * 3600; second++) {
    clock.advance(1000);
    if (connections.active < 2) await eventually('it is replaced', () => connections.active === 2);
  }
  t.like(connections, { total: 8, localClose: 2 });
  const later = listTokens().slice(6);
  t.is(later.length, 2);
  for (const date of later) t.true(date > '20260304T153' && date < '20260304T1647', date);
  t.is(await count(store, clock), 2);
});

test('the per-second client has no token, and its connections do not age', async (t) => {
  const clock = createManualClock();
  const { store, connections, received } = await setUp(t, 'perSecondStore', clock);
  clock.advance(24 * hourMs);
  t.is(await count(store, clock), 1);
  t.is(connections.total, 2);
  t.regex(received(), /incrby/i);
  t.notRegex(received(), /auth|X-Amz/i);
});
