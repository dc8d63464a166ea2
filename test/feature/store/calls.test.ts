// Tests the pulled metric of how long the store's servers take: each server by its own address, whatever the store is.
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { freePort } from '../../support/free-port.ts';
import { startMemcachedServer } from '../../support/memcached-server.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { startRedisSentinels } from '../../support/redis-sentinel.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';
import { startWorker } from '../../support/worker-in-process.ts';

const rules =
  'domain: d\ndescriptors: [{key: k, rate_limit: {unit: year, requests_per_unit: 1000}}]\n';
const answerMs = 60_000;
const family = 'ratelimit_store_call_duration_seconds';
const password = 'a-secret-of-the-store';
/** Longer than any machine stalls, so that lost calls time out late. */
const patient = { KVSTORE_TIMEOUT: '10s' };

async function startPulledWorker(t: ExecutionContext, env: Readonly<Record<string, string>>) {
  const pull = `127.0.0.1:${await freePort()}`;
  const { decide } = await startWorker(t, {
    env: {
      DISABLE_STATS: 'false',
      USE_PULLMETRICS: 'true',
      PULLMETRICS_ADDR: pull,
      ...patient,
      ...env,
    },
    rules,
  });
  const readPage = async () =>
    (await fetch(`http://${pull}/metrics`, { signal: AbortSignal.timeout(answerMs) })).text();
  return { decide, readPage };
}

/** The value of a line of the page; 0 without it. */
function sampleOf(page: string, sample: string, labels: string): number {
  const start = `${family}_${sample}{${labels}} `;
  const line = page.split('\n').find((each) => each.startsWith(start));
  return Number(line?.slice(start.length) ?? 0);
}

function serversOf(page: string): string[] {
  const counts = page.matchAll(new RegExp(`^${family}_count\\{server="([^"]+)"\\} `, 'gm'));
  return Array.from(counts, ([, server = '']) => server).sort();
}

async function seeDelay(
  t: ExecutionContext,
  port: number,
  toEnv: (address: string) => Readonly<Record<string, string>>,
): Promise<void> {
  const proxy = await startTcpProxy(t, port);
  const address = `127.0.0.1:${proxy.port}`;
  const { decide, readPage } = await startPulledWorker(t, toEnv(address));
  for (let round = 0; round < 5; round++) t.is((await decide('k')).status, 200);
  proxy.inject({ kind: 'latency', ms: 60 });
  const before = await readPage();
  t.deepEqual(serversOf(before), [address]);
  for (let round = 0; round < 5; round++) t.is((await decide('k')).status, 200);
  const after = await readPage();
  const server = `server="${address}"`;
  const growth = (sample: string, labels: string) =>
    sampleOf(after, sample, labels) - sampleOf(before, sample, labels);
  t.true(growth('count', server) >= 5);
  t.is(growth('bucket', `${server},le="0.05"`), 0, 'no call took 50 ms or less');
  t.true(growth('sum', server) >= 5 * 0.06);
  t.false(after.includes(password));
  const of = (sample: string, le: string) => growth(sample, `${server}${le}`);
  t.log(
    `with 60 ms more: ${of('count', '')} calls, ${of('bucket', ',le="0.05"')} up to 50 ms, ${of('bucket', ',le="0.1"')} up to 100 ms, mean ${(1000 * of('sum', '')) / of('count', '')} ms`,
  );
}

test.serial('a Redis 60 ms slower is visible by its address, without its password', async (t) => {
  const redis = await startRedisServer(t, {
    args: ['--requirepass', password],
    auth: [password],
  });
  await seeDelay(t, redis.port, (address) => ({ REDIS_URL: `redis://:${password}@${address}` }));
});

test.serial('a memcached that takes 60 ms longer is visible by its address', async (t) => {
  const memcached = await startMemcachedServer(t);
  await seeDelay(t, memcached.port, (address) => ({
    BACKEND_TYPE: 'memcache',
    MEMCACHE_HOST_PORT: address,
  }));
});

test.serial('behind sentinels the calls are attributed to the master', async (t) => {
  const group = await startRedisSentinels(t);
  const { decide, readPage } = await startPulledWorker(t, {
    REDIS_TYPE: 'sentinel',
    REDIS_URL: group.url,
  });
  t.is((await decide('k')).status, 200);
  t.deepEqual(serversOf(await readPage()), [group.servers[0].url]);
});

test.serial('in a cluster each node that counts has its own calls', async (t) => {
  const cluster = await startRedisCluster(t);
  const { decide, readPage } = await startPulledWorker(t, {
    REDIS_TYPE: 'cluster',
    REDIS_URL: cluster.url,
  });
  for (let value = 0; value < 30; value++) t.is((await decide(`k=${value}`)).status, 200);
  t.deepEqual(serversOf(await readPage()), cluster.masters.map(({ url }) => url).sort());
});

test.serial('a store without servers has no calls', async (t) => {
  const { decide, readPage } = await startPulledWorker(t, { BACKEND_TYPE: 'memory' });
  t.is((await decide('k')).status, 200);
  t.false((await readPage()).includes(family));
});
