import test from 'ava';
import type { CounterStore } from '../../../worker/counters/store.ts';
import { type CountOutcome, countOn, createHit, type HitOptions } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { ownedByFile } from '../../support/owner.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRecordedRedisStore, openRedisStore } from '../../support/redis-store.ts';

const server = startRedisServer(ownedByFile(test));
const readOnly =
  "READONLY You can't write against a read only replica; set KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR=true, so that the connection is closed and the next one leads to the master";

function count(store: CounterStore, ...hits: HitOptions[]): Promise<CountOutcome> {
  return countOn(store, hits.map(createHit));
}

test('a value that is not a counter fails only the requests that use it, and is named', async (t) => {
  const { url, command } = await server;
  const store = await openRedisStore(t, url);
  await command('LPUSH', 'refused_list', 'x');
  await command('SET', 'refused_text', 'abc');
  await command('SET', 'refused_negative', '-5');
  const [list, text, negative, both, good, refund] = await Promise.all([
    count(store, { key: 'refused_list' }),
    count(store, { key: 'refused_text' }),
    count(store, { key: 'refused_negative' }),
    count(store, { key: 'refused_good' }, { key: 'refused_text' }),
    count(store, { key: 'refused_good' }),
    count(store, { key: 'refused_text', refund: true }),
  ]);
  const prefix = `key-value store ${url}: `;
  t.is(
    list.error?.message,
    `${prefix}WRONGTYPE Operation against a key holding the wrong kind of value (counter "refused_list")`,
  );
  t.is(
    text.error?.message,
    `${prefix}ERR value is not an integer or out of range (counter "refused_text")`,
  );
  t.is(negative.error?.message, `${prefix}counter "refused_negative" is negative: -4`);
  t.is(both.error?.message, text.error?.message);
  t.deepEqual(good.after, [2]);
  t.is(refund.error?.message, text.error?.message);
  t.is(store.connections.localClose, 0);
});

test('a refund of a negative counter leaves it unchanged', async (t) => {
  const { url, command } = await server;
  const store = await openRedisStore(t, url);
  await command('SET', 'below_zero', '-5');
  t.deepEqual((await count(store, { key: 'below_zero', refund: true })).after, [0]);
  t.is(await command('GET', 'below_zero'), '-5');
});

test('a refund keeps the lifetime', async (t) => {
  const { url, command } = await server;
  const store = await openRedisStore(t, url, { jitterMaxSeconds: 0 });
  await count(store, { key: 'kept_', hits: 5, windowSeconds: 500 });
  await count(store, { key: 'kept_', hits: 9, refund: true, windowSeconds: 9 });
  const lifetime = Number(await command('TTL', 'kept_'));
  t.true(lifetime > 400 && lifetime <= 500);
});

test('a read-only replica: its message is in the error, and the connection is kept', async (t) => {
  const { url } = await server;
  const replica = await startRedisServer(t);
  const store = await openRedisStore(t, replica.url);
  await eventually('both connections', () => store.connections.active === 2);
  t.is((await count(store, { key: 'replica_' })).error, undefined);
  await replica.command('REPLICAOF', ...url.split(':'));
  const message = `key-value store ${replica.url}: ${readOnly}`;
  t.is((await count(store, { key: 'replica_' })).error?.message, message);
  await replica.command('REPLICAOF', 'NO', 'ONE');
  t.is((await count(store, { key: 'replica_' })).error, undefined);
  t.is(store.connections.total, 2);
});

test('a full server refuses, and counts again when there is room', async (t) => {
  const redis = await startRedisServer(t);
  const store = await openRedisStore(t, redis.url);
  await redis.command('CONFIG', 'SET', 'maxmemory', 1);
  const { error } = await count(store, { key: 'full_' });
  t.regex(error?.message ?? '', /: OOM command not allowed/);
  await redis.command('CONFIG', 'SET', 'maxmemory', 0);
  t.deepEqual((await count(store, { key: 'full_' })).after, [1]);
});

test('refunds continue while the server drops its scripts', async (t) => {
  const redis = await startRedisServer(t);
  const store = await openRedisStore(t, redis.url);
  await count(store, { key: 'flushed_', hits: 1000 });
  for (let round = 0; round < 20; round++) {
    const [, ...refunds] = await Promise.all([
      redis.command('SCRIPT', 'FLUSH'),
      ...Array.from({ length: 10 }, () => count(store, { key: 'flushed_', refund: true })),
    ]);
    t.true(refunds.every(({ error }) => error === undefined));
  }
  t.is(await redis.command('GET', 'flushed_'), '800');
});

// Proof of migrating.md: `EXPIRE` is sent when a counter is new
test('the expiry is sent once for a counter, and again when the counter is new', async (t) => {
  const redis = await startRedisServer(t);
  const store = await openRedisStore(t, redis.url, { jitterMaxSeconds: 0 });
  const key = 'expiry_';
  const countExpires = async () => {
    const stats = String(await redis.command('INFO', 'commandstats'));
    return Number(/cmdstat_expire:calls=(\d+)/.exec(stats)?.[1] ?? 0);
  };
  await count(store, { key, hits: 0, windowSeconds: 60 });
  t.is(await countExpires(), 1);
  // A busy machine may query it late.
  const hasLifetime = async () => {
    const seconds = Number(await redis.command('TTL', key));
    return seconds > 30 && seconds <= 60;
  };
  t.true(await hasLifetime());
  // Hits of 0 do not create it.
  await count(store, { key, hits: 1, windowSeconds: 60 });
  t.is(await countExpires(), 2);
  for (let i = 0; i < 20; i++) await count(store, { key, hits: 1, windowSeconds: 60 });
  t.is(await countExpires(), 2);
  // Evicted: the next increment creates it again.
  await redis.command('DEL', key);
  t.deepEqual((await count(store, { key, hits: 1, windowSeconds: 60 })).after, [1]);
  await eventually('a lifetime', hasLifetime);
  await count(store, { key, hits: 1, windowSeconds: 60 });
  t.is(await countExpires(), 3);
});

test('the lifetime is the window and a jitter below its bound', async (t) => {
  const { url, command } = await server;
  const store = await openRedisStore(t, url, { jitterMaxSeconds: 50 });
  const lifetimes = new Set<number>();
  for (let i = 0; i < 40; i++) {
    await count(store, { key: `jitter_${i}`, windowSeconds: 1000 });
    lifetimes.add(Number(await command('TTL', `jitter_${i}`)));
  }
  // A busy machine may query it late.
  t.true([...lifetimes].every((lifetime) => lifetime > 900 && lifetime < 1050));
  t.true(lifetimes.size > 5);
});

test('user and password, a wrong one, and none: reported without the secret', async (t) => {
  const redis = await startRedisServer(t, {
    args: ['--requirepass', 'open-sesame'],
    auth: ['open-sesame'],
  });
  await redis.command('ACL', 'SETUSER', 'robin', 'on', '>s:3cret', '~*', '+@all');
  for (const auth of ['open-sesame', ':open-sesame', 'robin:s:3cret']) {
    const store = await openRedisStore(t, redis.url, { auth });
    t.is((await count(store, { key: 'auth_' })).error, undefined);
    await store.close(0);
  }
  for (const [auth, text] of [
    ['robin:wrong-word', /: AUTH: WRONGPASS /],
    ['', /: PING: NOAUTH Authentication required\./],
  ] as const) {
    const store = createRecordedRedisStore(redis.url, { auth });
    const stopping = new AbortController();
    const connecting = store.connect(stopping.signal);
    await eventually('a warning', () => store.log.lines.length > 0);
    t.regex(store.log.lines[0] ?? '', text);
    t.false(store.log.lines.join().includes('wrong-word'));
    t.regex(store.state().detail, /; last failure at \d{4}-\d\d-\d\dT[\d:.]+Z: .*AUTH/);
    stopping.abort();
    await t.throwsAsync(connecting, { message: /^stopped while waiting for/ });
    await store.close(0);
  }
});

test('credentials and database of a redis:// URL are used', async (t) => {
  const redis = await startRedisServer(t, { args: ['--requirepass', 'p@ss'], auth: ['p@ss'] });
  const store = await openRedisStore(t, `redis://:p%40ss@${redis.url}/3`);
  t.is((await count(store, { key: 'database_' })).error, undefined);
  t.regex(String(await redis.command('INFO', 'keyspace')), /db3:keys=1/);
  t.false(store.state().detail.includes('p@ss') || store.state().detail.includes('p%40ss'));
});
