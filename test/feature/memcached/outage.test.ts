// Tests memory caches that are gone, silent, cut off or answer nonsense: no decision fails or waits long, counting
// resumes by itself, and nothing is counted twice.
import { createServer } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { chooseNode } from '../../../worker/counters/memcached/memcached-nodes.ts';
import type { CounterStore } from '../../../worker/counters/store.ts';
import { countOn, createHit, type HitOptions } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { listenFor } from '../../support/listen.ts';
import { startMemcachedServer } from '../../support/memcached-server.ts';
import { openMemcachedStore, type RecordedMemcachedStore } from '../../support/memcached-store.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

const openGauge = 'ratelimit.store.breaker.open';
const readError = 'ratelimit.memcache.multiget.__code=error';
const incrementError = 'ratelimit.memcache.increment.__code=error';

/** For silence: the proxy keeps connections, accepts others, and forwards nothing. */
async function startBehindProxy(t: ExecutionContext) {
  const memcached = await startMemcachedServer(t);
  const proxy = await startTcpProxy(t, memcached.port);
  return { memcached, proxy, url: `127.0.0.1:${proxy.port}` };
}

function open(
  t: ExecutionContext,
  urls: readonly string[],
  maxIdleConnections = 2,
): Promise<RecordedMemcachedStore> {
  return openMemcachedStore(t, { urls, maxIdleConnections });
}

function count(store: CounterStore, hits: readonly HitOptions[], timeoutMs = 20_000) {
  const deadlineMs = systemClock.monotonicMs() + timeoutMs;
  return countOn(store, hits.map(createHit), { deadlineMs });
}

/** Like `count`, with a deadline so short that it may already have passed on a busy machine. */
async function countInHurry(store: CounterStore, hits: readonly HitOptions[]) {
  for (;;) {
    const outcome = await count(store, hits, 60);
    if (!outcome.error?.message.includes('before the counters were read')) return outcome;
  }
}

function errorsOf(store: RecordedMemcachedStore): string[] {
  return store.log.lines.filter((line) => line.startsWith('error'));
}

test('an unreachable node counts as 0, and is reported at the start', async (t) => {
  const url = `127.0.0.1:${await freePort()}`;
  const store = await open(t, [url]);
  await eventually('the failure is logged', () => errorsOf(store).length > 0);
  t.deepEqual(errorsOf(store), [
    `error memory cache ${url}: connect ECONNREFUSED ${url}; its counters count as 0 until it answers`,
  ]);
  for (let round = 0; round < 20; round++) {
    const { error, after } = await count(store, [{ key: 'away_', hits: 3 }, { key: 'b_' }]);
    t.is(error, undefined);
    t.deepEqual(after, [3, 1]);
  }
  t.is(store.metrics.counter(readError).value, 20);
  await eventually(
    'each increment that is given up is counted',
    () => store.metrics.counter(incrementError).value === 40,
  );
  t.is(errorsOf(store).length, 1);
  t.deepEqual(store.state(), {
    healthy: true,
    detail: `memory cache ${url} (connect ECONNREFUSED ${url})`,
  });
});

test('a node that fails and recovers is used again', async (t) => {
  const memcached = await startMemcachedServer(t);
  const store = await open(t, [memcached.url]);
  t.deepEqual((await count(store, [{ key: 'back_', hits: 5 }])).after, [5]);
  await store.settled();
  await memcached.kill();
  await eventually('counting as 0', async () => {
    const { error, after } = await count(store, [{ key: 'back_' }]);
    t.is(error, undefined);
    return after[0] === 1 && errorsOf(store).length > 0;
  });
  await memcached.restart();
  await eventually('counting', async () => {
    await count(store, [{ key: 'back_' }]);
    await store.settled();
    return ((await memcached.get('back_')) ?? '') > '1';
  });
  t.is(store.log.lines.filter((line) => line.includes('answers again after')).length, 1);
  t.is(store.state().detail, `memory cache ${memcached.url}`);
});

test('an idle connection that ends is replaced', async (t) => {
  const { proxy, url } = await startBehindProxy(t);
  const store = await open(t, [url], 1);
  await count(store, [{ key: 'quiet_' }]);
  await store.settled();
  proxy.dropAll();
  await eventually('a new connection', async () => {
    const { after } = await count(store, [{ key: 'quiet_' }]);
    await store.settled();
    return (after[0] ?? 0) > 1;
  });
  t.is(proxy.accepted, 2);
});

test('the wait for a silent node is no longer than its timeout', async (t) => {
  const { proxy, url } = await startBehindProxy(t);
  const store = await openMemcachedStore(t, { urls: [url], clock: systemClock });
  // A busy machine may have timed out on a slow answer.
  await eventually('it answers', async () => {
    const { after } = await count(store, [{ key: 'silent_', hits: 7 }]);
    await store.settled();
    return (after[0] ?? 0) > 7 && store.metrics.gauge(openGauge).value === 0;
  });
  proxy.inject({ kind: 'stall' });
  // Only their deadline would answer these, and that is after the test.
  const asked = [1, 2, 3].map(() => count(store, [{ key: 'silent_' }], 600_000));
  const results = await Promise.all(asked);
  for (const { error, after, tookMs } of results) {
    t.is(error, undefined);
    // Each separately: the results of the others are unknown too.
    t.deepEqual(after, [1]);
    t.true(tookMs >= 400, `${tookMs} ms`);
  }
  t.true(errorsOf(store).some((line) => line.includes('no answer in 500 ms')));
  proxy.heal();
  await eventually('counting', async () => {
    const { after } = await count(store, [{ key: 'silent_' }]);
    return (after[0] ?? 0) > 7;
  });
});

test('an earlier deadline ends the wait', async (t) => {
  const { proxy, url } = await startBehindProxy(t);
  const store = await openMemcachedStore(t, { urls: [url] });
  await count(store, [{ key: 'hurry_' }]);
  await store.settled();
  proxy.inject({ kind: 'stall' });
  const { error, after } = await countInHurry(store, [{ key: 'hurry_', hits: 2 }]);
  t.is(error, undefined);
  t.deepEqual(after, [2]);
  proxy.heal();
});

test('one unreachable node leaves the counters of the others exact', async (t) => {
  const memcached = await startMemcachedServer(t);
  const store = await open(t, [memcached.url, `127.0.0.1:${await freePort()}`]);
  const keys = Array.from({ length: 20 }, (_, index) => `half_${index}`);
  for (let round = 1; round <= 3; round++) {
    const { error, after } = await count(
      store,
      keys.map((key) => ({ key })),
    );
    t.is(error, undefined);
    t.deepEqual(
      after,
      keys.map((key) => (chooseNode(key, 2, 1).node === 0 ? round : 1)),
    );
  }
});

test('200 cut answers: every hit is counted once', async (t) => {
  const { memcached, proxy, url } = await startBehindProxy(t);
  const store = await open(t, [url]);
  const sent = new Map<string, number>();
  for (let index = 0; index < 20; index++) {
    await count(store, [{ key: `cut_${index}_` }]);
    sent.set(`cut_${index}_`, 1);
  }
  await store.settled();
  for (let round = 0; round < 200; round++) {
    const key = `cut_${round % 20}_`;
    const cut = proxy.cutNextReply(`incr ${key}`);
    await eventually('an answer is cut', async () => {
      sent.set(key, (sent.get(key) ?? 0) + 1);
      t.is((await count(store, [{ key }])).error, undefined);
      return Promise.race([cut.then(() => true), store.settled().then(() => false)]);
    });
  }
  await store.settled();
  for (const [key, hits] of sent) t.is(await memcached.get(key), String(hits), key);
  t.true(proxy.accepted >= 200);
});

test('close waits for the hits that were answered', async (t) => {
  const memcached = await startMemcachedServer(t);
  const store = await openMemcachedStore(t, { urls: [memcached.url] });
  const counting = Promise.all(
    Array.from({ length: 200 }, (_, index) => count(store, [{ key: `last_${index}` }])),
  );
  await store.close(5_000);
  await counting;
  for (const index of [0, 99, 199]) t.is(await memcached.get(`last_${index}`), '1');
  t.deepEqual(store.log.lines, []);
});

test('close gives up after its grace period, and reports what is lost', async (t) => {
  const { proxy, url } = await startBehindProxy(t);
  const store = await openMemcachedStore(t, { urls: [url] });
  await count(store, [{ key: 'lost_' }]);
  await store.settled();
  proxy.inject({ kind: 'stall' });
  // Answered by its deadline, so that its hits are still in flight.
  await countInHurry(store, [{ key: 'lost_' }]);
  const waiting = count(store, [{ key: 'lost_' }]);
  await store.close(50);
  t.is((await waiting).error?.code, 'store');
  t.true(
    store.log.lines.some(
      (line) =>
        line === 'warning memory cache: the hits of 1 counters were not added before the stop',
    ),
    store.log.lines.join('\n'),
  );
  proxy.heal();
});

test.serial('more than 65,536 waiting requests fail at once', async (t) => {
  const memcached = await startMemcachedServer(t);
  const store = await open(t, [memcached.url]);
  const all = Array.from({ length: 65_537 }, () => count(store, [{ key: 'crowd_' }]));
  t.is((await all.at(-1))?.error?.code, 'overloaded');
  const results = await Promise.all(all);
  t.is(results.filter(({ error }) => error === undefined).length, 65_536);
  t.is(results[65_535]?.after[0], 65_536);
});

test('counters that another worker creates at that moment, and those that the server has no room for, are distinguished', async (t) => {
  const begun = new Set<string>();
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.setEncoding('latin1').on('data', (text) => {
      for (const line of `${text}`.split('\r\n')) {
        const [command, key = ''] = line.split(' ');
        const isFull = key.startsWith('full_');
        if (command === 'get' || command === 'gets') socket.write('END\r\n');
        if (command === 'touch') socket.write('TOUCHED\r\n');
        if (command === 'incr') socket.write(begun.has(key) ? '7\r\n' : 'NOT_FOUND\r\n');
        if (command === 'add') {
          begun.add(key);
          socket.write(isFull ? 'SERVER_ERROR out of memory storing object\r\n' : 'NOT_STORED\r\n');
        }
      }
    });
  });
  const port = await listenFor(t, server);
  const store = await open(t, [`127.0.0.1:${port}`]);
  await count(store, [{ key: 'taken_' }, { key: 'full_' }]);
  await store.settled();
  t.like(Object.fromEntries(store.metrics.snapshot()), {
    'ratelimit.memcache.add.__code=error': 1,
    'ratelimit.memcache.add.__code=not_stored': 1,
    'ratelimit.memcache.increment.__code=miss': 2,
    'ratelimit.memcache.increment.__code=success': 1,
  });
});

for (const [what, reply] of [
  ['an unsolicited line', 'ERROR Too many open connections\r\n'],
  ['an endless line', 'x'.repeat(10_000)],
  ['a broken value', 'VALUE a b c\r\n'],
] as const) {
  test(`a server that sends ${what} counts as 0`, async (t) => {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      socket.write(reply);
    });
    const port = await listenFor(t, server);
    // Its reply may pass for an answer; then it is silent.
    const urls = [`127.0.0.1:${port}`];
    const store = await openMemcachedStore(t, { urls, clock: systemClock });
    for (let round = 0; round < 3; round++) {
      const { error, after } = await count(store, [{ key: 'nonsense_' }]);
      t.is(error, undefined);
      t.deepEqual(after, [1]);
    }
    await eventually('the failure is logged', () => errorsOf(store).length > 0);
  });
}
