// Tests Redis gone, silent, or cut off during a load: errors only while it is unreachable, each in time, recovery by
// itself, and nothing counted twice.
import test, { type ExecutionContext } from 'ava';
import { countOn, createHit, startCounting } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { openRedisStore } from '../../support/redis-store.ts';
import {
  type LoadResult,
  loadPerSecond,
  type StoreLoad,
  startSteadyLoad,
} from '../../support/steady-load.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

/** Timeout of the store and of each request: longer than any machine stalls. */
const timeoutMs = 5_000;
/** The rest is for a busy machine. */
const settleBoundMs = timeoutMs + 20_000;

interface Outage {
  readonly awayMs: number;
  /** When the server was first seen to answer again. */
  readonly backMs: number;
}

// Proof of migrating.md: While the store is known to be away a decision fails at once
test.serial('a killed and restarted server: errors while it is away, OK soon after', async (t) => {
  const redis = await startRedisServer(t);
  const store = await openRedisStore(t, redis.url, { timeoutMs });
  const load = startSteadyLoad(store, timeoutMs, (index) => [{ key: `kill_${index % 7}_` }]);
  await eventually('the load runs', () => load.results.length > 50);
  const awayMs = performance.now();
  await redis.kill();
  // Long enough for the pauses between attempts to have grown.
  await eventually('errors for 3 s', () => countErrors(load) > 3 * loadPerSecond);
  await redis.restart();
  const outage = { awayMs, backMs: performance.now() };
  await checkRecovery(t, load, outage);
  t.true(load.results.some(({ error }) => error?.message.includes('ECONNREFUSED')));
  t.deepEqual(store.healthChanges, [true, false, true]);
  await eventually('both connections', () => store.connections.active === 2);
  const errors = store.log.lines.filter((line) => line.startsWith('error'));
  // One every few seconds; a busy machine has more.
  const mostLines = 10 + (outage.backMs - outage.awayMs) / 1_000;
  t.true(errors.length >= 1 && errors.length <= mostLines, errors.join('\n'));
  t.true(
    errors.every((line) => line.includes(`key-value store ${redis.url}: `)),
    errors.join('\n'),
  );
  t.is(store.log.lines.filter((line) => line.includes('answers again')).length, 1);
});

// Proof of migrating.md: A decision never takes longer than `KVSTORE_TIMEOUT` or the caller's own deadline
test.serial('a stopped and continued server: errors while silent, OK soon after', async (t) => {
  const redis = await startRedisServer(t);
  const store = await openRedisStore(t, redis.url, { timeoutMs });
  const load = startSteadyLoad(store, timeoutMs, (index) => [{ key: `stop_${index % 7}_` }]);
  await eventually('the load runs', () => load.results.length > 50);
  const awayMs = performance.now();
  await redis.pause();
  const overTwoTimeouts = (2 * timeoutMs * loadPerSecond) / 1_000;
  await eventually('errors over two timeouts', () => countErrors(load) > overTwoTimeouts);
  redis.resume();
  await redis.command('PING');
  await checkRecovery(t, load, { awayMs, backMs: performance.now() });
  let answered = 0;
  let counted = 0;
  for (const { error } of load.results) if (error === undefined) answered++;
  for (let index = 0; index < 7; index++) {
    counted += Number(await redis.command('GET', `stop_${index}_`));
  }
  t.true(answered <= counted && counted <= load.results.length);
});

test.serial('a short silence causes a wait but no error', async (t) => {
  const redis = await startRedisServer(t);
  let sent = '';
  const proxy = await startTcpProxy(t, redis.port, { onRequest: (chunk) => (sent += chunk) });
  const store = await openRedisStore(t, `127.0.0.1:${proxy.port}`, { timeoutMs: 20_000 });
  await eventually('both connections', () => store.connections.active === 2);
  await redis.pause();
  const result = countOn(store, [createHit({ key: 'silence_' })]);
  await eventually('it is asked', () => sent.includes('silence_'));
  redis.resume();
  t.deepEqual((await result).after, [1]);
  t.is(store.connections.total, 2);
});

test.serial('200 cut replies: for each key, answered OK <= counter <= sent', async (t) => {
  const redis = await startRedisServer(t);
  const proxy = await startTcpProxy(t, redis.port);
  const store = await openRedisStore(t, `127.0.0.1:${proxy.port}`, { timeoutMs: 20_000 });
  const sent = new Map<string, number>();
  const answered = new Map<string, number>();
  const add = (to: Map<string, number>, key: string, hits: number) =>
    to.set(key, (to.get(key) ?? 0) + hits);
  const countOnce = async (key: string, hits: number) => {
    const { request, result } = startCounting([createHit({ key, hits })]);
    add(sent, key, hits);
    store.count(request);
    if ((await result).error === undefined) add(answered, key, hits);
  };
  for (let round = 0; round < 200; round++) {
    const key = `cut_${round % 20}_`;
    let isCut = false;
    void proxy.cutNextReply('cut_').then(() => {
      isCut = true;
    });
    // Once is enough, unless nothing can be sent while the connections are replaced.
    await eventually('a reply is cut', async () => {
      await Promise.all([
        countOnce(key, 1),
        countOnce(key, 2),
        countOnce(`cut_${(round + 1) % 20}_`, 3),
      ]);
      return isCut;
    });
  }
  for (const [key, hits] of sent) {
    const counter = Number(await redis.command('GET', key));
    t.true((answered.get(key) ?? 0) <= counter, `${key}: ${answered.get(key)} OK, ${counter}`);
    t.true(counter <= hits, `${key}: ${counter} counted, ${hits} sent`);
  }
  t.true(proxy.accepted >= 200);
});

test.serial('a stalled connection is replaced after the timeout', async (t) => {
  const redis = await startRedisServer(t);
  const proxy = await startTcpProxy(t, redis.port);
  const store = await openRedisStore(t, `127.0.0.1:${proxy.port}`, { timeoutMs });
  await eventually('both connections', () => store.connections.active === 2);
  const load = startSteadyLoad(store, timeoutMs, () => [{ key: 'stall_' }]);
  await eventually('the load runs', () => load.results.length > 20);
  const awayMs = performance.now();
  proxy.inject({ kind: 'stall' });
  await eventually('both connections are given up', () => store.connections.localClose >= 2);
  proxy.heal();
  await checkRecovery(t, load, { awayMs, backMs: performance.now() });
});

test.serial('while a lost connection is replaced, requests wait and do not fail', async (t) => {
  const redis = await startRedisServer(t);
  const proxy = await startTcpProxy(t, redis.port);
  const store = await openRedisStore(t, `127.0.0.1:${proxy.port}`);
  await eventually('both connections', () => store.connections.active === 2);
  proxy.dropAll();
  await eventually('the loss is noticed', () => store.healthChanges.includes(false));
  const result = countOn(store, [createHit({ key: 'replaced_' })]);
  t.deepEqual((await result).after, [1]);
});

function countErrors({ results }: StoreLoad): number {
  return results.filter(({ error }) => error !== undefined).length;
}

async function checkRecovery(t: ExecutionContext, load: StoreLoad, outage: Outage): Promise<void> {
  const { awayMs, backMs } = outage;
  const isOkAfter = ({ error, startedMs }: LoadResult) => error === undefined && startedMs > backMs;
  await eventually('OK again', () => load.results.filter(isOkAfter).length > 50);
  const results = await load.stop();
  const slackMs = load.worstLagMs;
  const settledMs = ({ startedMs, tookMs }: LoadResult) => startedMs + tookMs;
  const slowest = Math.max(...results.map(({ tookMs }) => tookMs));
  t.true(slowest <= settleBoundMs + slackMs, `${slowest} ms, ${slackMs} ms lag`);
  const firstOk = Math.min(...results.filter(isOkAfter).map(settledMs));
  for (const result of results) {
    if (result.error === undefined) continue;
    t.is(result.error.code, 'store');
    t.true(settledMs(result) >= awayMs, `an error before: ${result.error.message}`);
    t.true(result.startedMs <= firstOk, `an error after: ${result.error.message}`);
  }
}
