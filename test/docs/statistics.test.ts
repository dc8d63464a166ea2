// The list of the worker's statistics is complete, and contains none that does not exist: compared with the names of
// workers with each store and each source of rules.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { catalogue } from '../../worker/metrics/catalogue.ts';
import { createRegistry } from '../../worker/metrics/registry.ts';
import { serverCertificate } from '../contract/grpc-transport-certificates.ts';
import { startMemcachedServer } from '../support/memcached-server.ts';
import { createQuotaWorld } from '../support/quota-envoy.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { limitResource, startScriptedAdsServer } from '../support/scripted-ads-server.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { startWorker } from '../support/worker-in-process.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const rules =
  'domain: d\ndescriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: 5}}]\n';
const memory = { BACKEND_TYPE: 'memory' };

/** `/stats` does not show timers. */
const shown = catalogue.filter(({ kind }) => kind !== 'timer');
const patternOf = (name: string) =>
  new RegExp(`^${name.replaceAll('.', '\\.').replace(/<[^>]*>/g, '.+')}$`);

function namesOf(page: string): string[] {
  const lines = page.split('\n').map((line) => /^([^\s{}]+): -?\d/.exec(line)?.[1]);
  return lines.filter((name) => name !== undefined);
}

async function namesOfWorker(
  t: ExecutionContext,
  env: Readonly<Record<string, string>>,
): Promise<string[]> {
  const worker = await startWorker(t, { env, rules });
  for (const entry of ['k', 'k', 'no']) await worker.decide(entry);
  return namesOf(await worker.page('/stats'));
}

async function namesOfProcesses(t: ExecutionContext, redisUrl: string): Promise<string[]> {
  const worker = await startWorkerProcess(t, {
    env: { REDIS_URL: redisUrl, WORKER_PROCESSES: '2' },
    rules: { 'a.yaml': rules },
  });
  return namesOf(await worker.page('/stats'));
}

/** Counters of rules appear once they have counted. */
function namesOfRules(): string[] {
  const metrics = createRegistry({ runtimeNamesMax: 10, log: createRecordedLog() });
  const stats = metrics.ruleStats('d.k', true);
  const { totalHits, overLimit, nearLimit, withinLimit } = stats;
  const { overLimitWithLocalCache, shadowMode, totalNegativeHits } = stats;
  const counters = [totalHits, overLimit, nearLimit, withinLimit, overLimitWithLocalCache];
  for (const each of [...counters, shadowMode, totalNegativeHits]) each.add(1);
  metrics.unknownDomain('x').add(1);
  return [...metrics.snapshot().keys()];
}

async function namesOfFollower(t: ExecutionContext): Promise<string[]> {
  const server = await startScriptedAdsServer(t);
  const started = startWorker(t, {
    env: { ...memory, CONFIG_TYPE: 'GRPC_XDS_SOTW', CONFIG_GRPC_XDS_SERVER_URL: server.url },
  });
  (await server.stream(0)).send('1', 'a', [limitResource('d', 'd', 5)]);
  return namesOf(await (await started).page('/stats'));
}

async function namesOverTls(t: ExecutionContext): Promise<string[]> {
  const folder = createTemporaryFolder(t);
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  await writeFile(cert, serverCertificate.cert);
  await writeFile(key, serverCertificate.key);
  const tls = { GRPC_SERVER_USE_TLS: 'true', GRPC_SERVER_TLS_CERT: cert, GRPC_SERVER_TLS_KEY: key };
  const worker = await startWorker(t, { env: { ...memory, ...tls }, rules });
  return namesOf(await worker.page('/stats'));
}

test('the list contains exactly the statistics that workers have', async (t) => {
  const redis = await startRedisServer(t);
  const memcached = await startMemcachedServer(t);
  const names = new Set([
    ...(await namesOfWorker(t, {
      ...memory,
      LOCAL_CACHE_SIZE_IN_BYTES: '1000000',
      RECORD_DECISIONS: '/dev/null',
    })),
    ...(await namesOfWorker(t, {
      REDIS_URL: redis.url,
      REDIS_PERSECOND: 'true',
      REDIS_PERSECOND_URL: redis.url,
      KVSTORE_FAILURE_MODE: 'allow',
    })),
    ...(await namesOfWorker(t, { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: memcached.url })),
    ...(await namesOverTls(t)),
    ...namesOfRules(),
    // They do not exist before the first stream.
    ...createQuotaWorld(rules).statistics().keys(),
    ...(await namesOfFollower(t)),
    ...(await namesOfProcesses(t, redis.url)),
  ]);
  t.true(names.size > shown.length / 2, `${names.size} names`);
  const isKnown = (name: string) => shown.some((entry) => patternOf(entry.name).test(name));
  t.deepEqual(
    [...names].filter((name) => !isKnown(name)),
    [],
    'missing in the list',
  );
  // It exists from its first event on (test/feature/settings/serving.test.ts).
  names.add('ratelimit.service.call.should_rate_limit.undecodable');
  const isThere = ({ name }: { name: string }) =>
    [...names].some((one) => patternOf(name).test(one));
  t.deepEqual(
    shown.filter((entry) => !isThere(entry)).map(({ name }) => name),
    [],
    'not there',
  );
});
