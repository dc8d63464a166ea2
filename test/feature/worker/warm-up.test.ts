// Tests a worker's decisions before it has callers, from the point of view of its stores, its operator and its callers.
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { parseWorkerSettings } from '../../../worker/settings.ts';
import { warmUp } from '../../../worker/warm-up.ts';
import { caCertificate, serverCertificate } from '../../contract/grpc-transport-certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { listenFor } from '../../support/listen.ts';
import { startMemcachedServer } from '../../support/memcached-server.ts';
import { programFile, workerNodeFlags } from '../../support/programs.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const repository = new URL('../../../', import.meta.url);

/** Long enough for a busy machine to complete it. */
const patienceMs = 50_000;
const keyForm = /^fleet_ratelane_warm_up_([0-9a-f]{12})_/;

async function warm(
  env: Record<string, string>,
  { signal = new AbortController().signal, limitMs = patienceMs } = {},
) {
  const result = parseWorkerSettings(env);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  await warmUp({ settings: result.settings, clock: systemClock, limitMs }, signal);
}

/** How often each command was run: `incrby` -> 12. */
async function commandCounts(redis: RedisServer): Promise<Map<string, number>> {
  const text = String(await redis.command('INFO', 'commandstats'));
  return new Map(
    [...text.matchAll(/cmdstat_(\w+):calls=(\d+)/g)].map(([, name = '', calls]) => [
      name,
      Number(calls),
    ]),
  );
}

// Proof of migrating.md: A start counts under keys `ratelane_warm_up_...` behind the prefix, [for at most a
// minute](operating.md#a-workers-start-and-stop)
test('all commands of a decision were sent to Redis before the ports open, with keys that soon expire', async (t) => {
  const redis = await startRedisServer(t);
  await warm({
    KVSTORE_URL: redis.url,
    CACHE_KEY_PREFIX: 'fleet_',
    EXPIRATION_JITTER_MAX_SECONDS: '300',
  });
  const counts = await commandCounts(redis);
  for (const command of ['incrby', 'expire', 'eval'])
    t.true((counts.get(command) ?? 0) > 0, command);
  const keys = (await redis.command('KEYS', '*')) as string[];
  t.true(keys.length > 0);
  for (const key of keys) {
    t.regex(key, keyForm);
    const seconds = Number(await redis.command('TTL', key));
    t.true(seconds <= 60 && seconds !== -1, `${key} expires in ${seconds} s`);
  }
});

test('the commands in the operating guide are all that a worker sends to Redis', async (t) => {
  const guide = await readFile(new URL('worker/docs/operating.md', repository), 'utf8');
  const [line = ''] = /^ACL SETUSER ratelane .*$/m.exec(guide) ?? [];
  const redis = await startRedisServer(t);
  await redis.command(...line.replace('>PASSWORD', '>sesame').split(' '));
  await warm({
    KVSTORE_URL: redis.url,
    KVSTORE_AUTH: 'ratelane:sesame',
    CACHE_KEY_PREFIX: 'limits_',
  });
  t.true(((await commandCounts(redis)).get('eval') ?? 0) > 0);
  t.deepEqual(await redis.command('ACL', 'LOG'), []);
  // Commands for other topologies and limits, from the sources.
  const folder = new URL('worker/counters/redis/', repository);
  const named = new Set(['PING', 'AUTH', 'SELECT']);
  for (const name of await readdir(folder)) {
    if (!name.endsWith('.ts') || name.endsWith('.test.ts')) continue;
    const source = await readFile(new URL(name, folder), 'utf8');
    const calls =
      /(?:toCommandText\(\s*|redis\.call\()'([A-Z]+)'(?:, '([A-Za-z-]+)')?|(?:'|\\n)(EVALSHA|INCRBY)(?:'|\\r)/g;
    for (const [, command, sub, script] of source.matchAll(calls)) {
      const isPart = command === 'CLUSTER' || command === 'SENTINEL';
      named.add(isPart ? `${command} ${sub?.toUpperCase()}` : (command ?? script ?? ''));
    }
  }
  const table = /^\| Commands \| For \|\n([\s\S]*?)\n\n/m.exec(guide)?.[1] ?? '';
  const listed = [...table.matchAll(/`([A-Z][A-Z -]+)`/g)].map(([, command]) => command);
  t.deepEqual([...named].sort(), [...new Set(listed)].sort());
});

test('a store that refuses the keys of the first decision gets no more of them', async (t) => {
  const redis = await startRedisServer(t);
  await redis.command('ACL', 'SETUSER', 'default', 'resetkeys', '~shop_*');
  for (const mode of ['error', 'allow']) {
    await redis.command('ACL', 'LOG', 'RESET');
    await warm({ KVSTORE_URL: redis.url, KVSTORE_FAILURE_MODE: mode });
    const refusals = (await redis.command('ACL', 'LOG')) as (string | number)[][];
    // One INCRBY and its EXPIRE.
    t.is(
      refusals.map(([, count]) => Number(count)).reduce((sum, each) => sum + each, 0),
      2,
      mode,
    );
  }
});

test('decisions from before the ports open are not visible on a worker', async (t) => {
  const redis = await startRedisServer(t);
  const worker = await startWorkerProcess(t, {
    env: { KVSTORE_URL: redis.url, LOG_LEVEL: 'debug' },
    rules: {
      'a.yaml':
        'domain: d\ndescriptors:\n  - key: k\n    rate_limit: {unit: year, requests_per_unit: 1}\n',
    },
  });
  t.true(((await commandCounts(redis)).get('incrby') ?? 0) > 0);
  const stats = await worker.page('/stats');
  t.regex(stats, /should_rate_limit/);
  t.notRegex(stats, /ratelane_warm_up/);
  t.notRegex(stats, /^ratelimit_server\.ShouldRateLimit\.total_requests: [1-9]/m);
  t.notRegex(await worker.page('/unmatched'), /ratelane_warm_up/);
  t.notRegex(worker.output(), /warm|127\.0\.0\.1:0/);
  t.is(worker.output().match(/Listening for/g)?.length, 3);
});

test('each of several processes decides before it has callers', async (t) => {
  const redis = await startRedisServer(t);
  // If a shared processor leaves too little time, the ports open without it.
  await eventually('both have decided', async () => {
    await redis.command('FLUSHALL');
    const worker = await startWorkerProcess(t, {
      env: { KVSTORE_URL: redis.url, CACHE_KEY_PREFIX: 'fleet_', WORKER_PROCESSES: '2' },
      rules: { 'a.yaml': 'domain: d\n' },
    });
    const keys = (await redis.command('KEYS', '*')) as string[];
    await worker.stop();
    return new Set(keys.map((key) => keyForm.exec(key)?.[1])).size === 2;
  });
  t.pass();
});

test('ports with TLS are called before they open, also one that requires client certificates', async (t) => {
  const redis = await startRedisServer(t);
  const folder = createTemporaryFolder(t);
  const files = { cert: join(folder, 'cert'), key: join(folder, 'key'), ca: join(folder, 'ca') };
  await writeFile(files.cert, serverCertificate.cert);
  await writeFile(files.key, serverCertificate.key);
  await writeFile(files.ca, caCertificate);
  await warm({
    KVSTORE_URL: redis.url,
    GRPC_SERVER_USE_TLS: 'true',
    GRPC_SERVER_TLS_CERT: files.cert,
    GRPC_SERVER_TLS_KEY: files.key,
    GRPC_CLIENT_TLS_CACERT: files.ca,
    HTTP_SERVER_USE_TLS: 'true',
    HTTP_SERVER_TLS_CERT: files.cert,
    HTTP_SERVER_TLS_KEY: files.key,
  });
  t.true(((await commandCounts(redis)).get('incrby') ?? 0) > 0);
});

test('memcached is called before the ports open', async (t) => {
  const memcached = await startMemcachedServer(t);
  await warm({ BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: memcached.url });
  t.true(((await memcached.stats()).get('incr_hits') ?? 0) > 0);
});

/** Prints on standard error how large the young generation is after each garbage collection that the program
 * requests. */
const collectionNotes = `data:text/javascript,${encodeURIComponent(`
  import { writeSync } from 'node:fs';
  import { getHeapSpaceStatistics } from 'node:v8';
  const { gc } = globalThis;
  globalThis.gc = (options) => {
    gc(options);
    const young = getHeapSpaceStatistics().find((space) => space.space_name === 'new_space');
    writeSync(2, 'Collected to ' + young.space_size + ' bytes\\n');
  };
`)}`;

test('each process has collected the garbage of the start before the ports open', async (t) => {
  const redis = await startRedisServer(t);
  for (const processes of [1, 2]) {
    const worker = await startWorkerProcess(t, {
      program: [
        process.execPath,
        ...workerNodeFlags,
        '--import',
        collectionNotes,
        programFile('worker'),
      ],
      env: { KVSTORE_URL: redis.url, WORKER_PROCESSES: String(processes) },
    });
    const [starting = ''] = worker.output().split('Listening for gRPC');
    const sizes = [...starting.matchAll(/Collected to (\d+) bytes/g)].map(([, size]) =>
      Number(size),
    );
    t.is(sizes.length, processes);
    // It was 16 MB by then.
    for (const size of sizes) t.true(size <= 2 ** 21, `${size} bytes`);
  }
});

test('a read-only store does not prevent a worker from starting', async (t) => {
  const redis = await startRedisServer(t);
  await redis.command('REPLICAOF', '127.0.0.1', '1');
  await t.notThrowsAsync(warm({ KVSTORE_URL: redis.url }));
});

test('a silent store does not prevent a worker from starting', async (t) => {
  const port = await listenFor(t, createServer());
  await t.notThrowsAsync(
    warm({ KVSTORE_URL: `127.0.0.1:${port}`, KVSTORE_TIMEOUT: '1m' }, { limitMs: 100 }),
  );
});

test('an aborted start does not wait for it', async (t) => {
  const redis = await startRedisServer(t);
  const reason = new Error('stopped');
  await t.throwsAsync(warm({ KVSTORE_URL: redis.url }, { signal: AbortSignal.abort(reason) }), {
    is: reason,
  });
});
