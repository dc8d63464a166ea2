// Tests the first connection: retried with growing pauses, reported at once with the address, abandoned on request.
import test from 'ava';
import { countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRecordedRedisStore } from '../../support/redis-store.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

test('a store that cannot be reached yet is retried, and the first failure is reported at once', async (t) => {
  const redis = await startRedisServer(t);
  await redis.kill();
  const store = createRecordedRedisStore(`redis://robin:secret@${redis.url}`, {
    startup: { initialIntervalMs: 100, maxIntervalMs: 200, maxElapsedMs: 0 },
  });
  t.teardown(() => store.close(0));
  const connecting = store.connect(new AbortController().signal);
  await eventually('a warning', () => store.log.lines.length > 0);
  const where = `key-value store ${redis.url}`;
  const refused = `${where}: connect ECONNREFUSED ${redis.url}`;
  t.is(store.log.lines[0], `warning ${refused}; next attempt in 0.1 s (check KVSTORE_URL)`);
  t.false(store.state().healthy);
  const result = countOn(store, [createHit({ key: 'early_' })]);
  t.is((await result).error?.message, refused);
  await redis.restart();
  // The default user takes no password and this user does not exist.
  await redis.command('ACL', 'SETUSER', 'robin', 'on', '>secret', '~*', '+@all');
  await connecting;
  t.true(store.state().healthy);
  t.deepEqual(store.healthChanges, [true]);
  t.is(store.log.lines.filter((line) => /^notice .*: answers, after/.test(line)).length, 1);
});

test('a silent server, or one that is no key-value server, is recognized as such', async (t) => {
  const redis = await startRedisServer(t);
  const proxy = await startTcpProxy(t, redis.port);
  proxy.inject({ kind: 'stall' });
  const store = createRecordedRedisStore(`127.0.0.1:${proxy.port}`, { timeoutMs: 100 });
  t.teardown(() => store.close(0));
  const connecting = store.connect(new AbortController().signal);
  await eventually('a warning', () => store.log.lines.length > 0);
  t.regex(store.log.lines[0] ?? '', /could not connect within 100 ms; next attempt/);
  proxy.heal();
  await connecting;
  t.pass();
});

test('an abort ends the wait, even during an attempt', async (t) => {
  const redis = await startRedisServer(t);
  await redis.pause();
  for (const type of ['single', 'sentinel', 'cluster'] as const) {
    const url = type === 'sentinel' ? `main,${redis.url}` : redis.url;
    const store = createRecordedRedisStore(url, { type, timeoutMs: 600_000 });
    t.teardown(() => store.close(0));
    const stopping = new AbortController();
    const connecting = store.connect(stopping.signal);
    setImmediate(() => stopping.abort());
    await t.throwsAsync(connecting, { message: /^stopped while waiting for key-value store / });
  }
});
