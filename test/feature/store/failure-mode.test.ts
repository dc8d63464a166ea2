// KVSTORE_FAILURE_MODE: tests what a whole worker answers while its store is unreachable, also when it is started
// meanwhile, and that it counts in the store again after the store has recovered.
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../support/eventually.ts';
import { startMemcachedServer } from '../../support/memcached-server.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { startWorker, type WorkerInProcess } from '../../support/worker-in-process.ts';
import { startWorkerProcess } from '../../support/worker-process.ts';

const rules = `domain: d
descriptors:
  - {key: day, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: shadow, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 2}}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: block, rate_limit: {unit: year, requests_per_unit: 0}}
`;
const modes = ['allow', 'deny', 'local'] as const;
type Mode = (typeof modes)[number];

interface Answer {
  readonly status: number;
  readonly body: {
    readonly statuses: readonly {
      readonly code: string;
      readonly limitRemaining?: number;
      readonly currentLimit?: { readonly requestsPerUnit: number };
    }[];
  };
}

async function ask(worker: WorkerInProcess, key: string, value = 'x'): Promise<Answer> {
  const { status, text } = await worker.decide(`${key}=${value}`);
  return { status, body: JSON.parse(text) };
}

async function askStatuses(worker: WorkerInProcess, key: string, times: number): Promise<number[]> {
  const statuses: number[] = [];
  for (let round = 0; round < times; round++) statuses.push((await ask(worker, key)).status);
  return statuses;
}

/** Like `askStatuses`, for counters that begin at 0. Repeated if a busy machine has made the server silent meanwhile,
 * so that it was not called. */
async function askWhilePresent(
  worker: WorkerInProcess,
  redis: RedisServer,
  key: string,
  times: number,
): Promise<number[]> {
  const readOpened = async () =>
    /^ratelimit\.store\.breaker\.opened: (\d+)$/m.exec(await worker.page('/stats'))?.[1];
  for (;;) {
    await eventually(
      'the server is asked',
      async () => !(await worker.page('/status')).includes('not asked: '),
    );
    const openedBefore = await readOpened();
    await redis.command('FLUSHALL');
    const statuses = await askStatuses(worker, key, times);
    if ((await readOpened()) === openedBefore) return statuses;
  }
}

/** The status of the answer. */
async function readHealth(worker: WorkerInProcess): Promise<number> {
  const { http } = await worker.started;
  const answer = await fetch(`http://${http.text}/healthcheck`);
  await answer.body?.cancel();
  return answer.status;
}

const expected = { allow: [200, 200, 200], deny: [429, 429, 429], local: [200, 200, 429] };

async function checkAnswers(t: ExecutionContext, worker: WorkerInProcess, mode: Mode) {
  t.deepEqual(await askStatuses(worker, 'day', 3), expected[mode]);
  t.deepEqual(await askStatuses(worker, 'shadow', 3), [200, 200, 200]);
  t.deepEqual(await askStatuses(worker, 'free', 3), [200, 200, 200]);
  t.deepEqual(await askStatuses(worker, 'unknown', 3), [200, 200, 200]);
  t.is((await ask(worker, 'block')).status, 429, 'what is over by itself is over in all modes');
  const [status] = (await ask(worker, 'day', 'other')).body.statuses;
  t.is(status?.currentLimit?.requestsPerUnit, 2);
  t.is(status?.limitRemaining ?? 0, mode === 'deny' ? 0 : 1);
  const stats = await worker.page('/stats');
  t.regex(stats, new RegExp(`ratelimit\\.failure_mode\\.${mode}: 8\\b`));
  t.regex(stats, /should_rate_limit\.redis_error: 0\b/);
  // Uncounted hits are reported neither as within nor as over the limit.
  t.is(/rate_limit\.d\.day\.within_limit: 3\b/.test(stats), mode === 'local');
  t.is(/rate_limit\.d\.day\.over_limit: 1\b/.test(stats), mode === 'local');
  t.is(/rate_limit\.d\.day\.(within|over)_limit/.test(stats), mode === 'local');
  t.regex(
    await worker.page('/status'),
    new RegExp(`when the store fails: KVSTORE_FAILURE_MODE=${mode}: 8 decisions answered`),
  );
}

for (const mode of modes) {
  // Proof of migrating.md: With `KVSTORE_FAILURE_MODE` a decision has an answer when the store fails, and a
  // worker starts without it
  test.serial(
    `KVSTORE_FAILURE_MODE=${mode}: a worker without its Redis serves at once`,
    async (t) => {
      const redis = await startRedisServer(t);
      await redis.kill();
      const worker = await startWorker(t, {
        env: { KVSTORE_URL: redis.url, KVSTORE_FAILURE_MODE: mode },
        rules,
      });
      await checkAnswers(t, worker, mode);
      t.regex(worker.log.lines.join('\n'), /without the store|in this process alone/);
      await redis.restart();
      await eventually('it is counted in Redis', async () => {
        await ask(worker, 'shadow');
        const keys = await redis.command('KEYS', 'd_shadow_*');
        return Array.isArray(keys) && keys.length === 1;
      });
      // The process' own counts are discarded.
      t.deepEqual(await askWhilePresent(worker, redis, 'day', 3), [200, 200, 429]);
    },
  );

  test.serial(
    `KVSTORE_FAILURE_MODE=${mode}: a worker started without its memory cache serves at once`,
    async (t) => {
      const memcached = await startMemcachedServer(t);
      await memcached.kill();
      const worker = await startWorker(t, {
        env: {
          BACKEND_TYPE: 'memcache',
          MEMCACHE_HOST_PORT: memcached.url,
          KVSTORE_FAILURE_MODE: mode,
        },
        rules,
      });
      await checkAnswers(t, worker, mode);
    },
  );
}

test.serial('several processes: their statistics and states are those of the worker', async (t) => {
  const redis = await startRedisServer(t);
  await redis.kill();
  const worker = await startWorkerProcess(t, {
    env: { KVSTORE_URL: redis.url, KVSTORE_FAILURE_MODE: 'allow', WORKER_PROCESSES: '2' },
    rules: { 'd.yaml': rules },
  });
  const ask = (key: string) =>
    fetch(`http://127.0.0.1:${worker.ports.http}/json`, {
      method: 'POST',
      body: JSON.stringify({ domain: 'd', descriptors: [{ entries: [{ key, value: 'x' }] }] }),
    }).then(async (answer) => {
      await answer.body?.cancel();
      return answer.status;
    });
  const statuses = await Promise.all(Array.from({ length: 20 }, () => ask('day')));
  t.true(statuses.every((status) => status === 200));
  await eventually('both processes have reported', async () => {
    const stats = await worker.page('/stats');
    return (
      /^ratelimit\.failure_mode\.allow: 20$/m.test(stats) &&
      /^ratelimit\.store\.breaker\.open: 2$/m.test(stats)
    );
  });
  const page = await worker.page('/status');
  t.is(page.match(/when the store fails: KVSTORE_FAILURE_MODE=allow/g)?.length, 2, page);
  t.is(page.match(/not asked: key-value store [^ ]+: connect ECONNREFUSED/g)?.length, 2, page);
  await redis.restart();
  await eventually('it is back in both', async () => {
    await ask('shadow');
    return /^ratelimit\.store\.breaker\.open: 0$/m.test(await worker.page('/stats'));
  });
});

test.serial('a health check that needs a connection fails without the store', async (t) => {
  const redis = await startRedisServer(t, {
    args: ['--requirepass', 'secret'],
    auth: ['secret'],
  });
  await redis.kill();
  const worker = await startWorker(t, {
    env: {
      KVSTORE_URL: `redis://:secret@${redis.url}`,
      KVSTORE_FAILURE_MODE: 'allow',
      KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
    },
    rules,
  });
  t.is(await readHealth(worker), 500);
  t.is((await ask(worker, 'day')).status, 200);
  await redis.restart();
  await eventually('healthy', async () => (await readHealth(worker)) === 200);
  await redis.kill();
  await eventually('unhealthy', async () => (await readHealth(worker)) === 500);
  t.is((await ask(worker, 'day')).status, 200);
  const shown = `${await worker.page('/status')}${worker.log.lines.join('\n')}`;
  t.true(shown.includes(redis.url));
  t.false(shown.includes('secret'));
});

test.serial('a health check of connections fails while one of two stores is away', async (t) => {
  const [main, perSecond] = await Promise.all([startRedisServer(t), startRedisServer(t)]);
  const worker = await startWorker(t, {
    env: {
      KVSTORE_URL: main.url,
      KVSTORE_PERSECOND: 'true',
      KVSTORE_PERSECOND_SOCKET_TYPE: 'tcp',
      KVSTORE_PERSECOND_URL: perSecond.url,
      KVSTORE_FAILURE_MODE: 'allow',
      KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION: 'true',
    },
    rules,
  });
  const isConnected = async (pool: string) =>
    !new RegExp(`^ratelimit\\.${pool}\\.cx_active: 0$`, 'm').test(await worker.page('/stats'));
  await eventually('healthy', async () => (await readHealth(worker)) === 200);
  await Promise.all([main.kill(), perSecond.kill()]);
  await eventually('both are away', async () => {
    const connected = [await isConnected('redis_pool'), await isConnected('redis_per_second_pool')];
    return !connected.includes(true);
  });
  await perSecond.restart();
  await eventually('one is back', () => isConnected('redis_per_second_pool'));
  t.is(await readHealth(worker), 500);
  await main.restart();
  await eventually('healthy', async () => (await readHealth(worker)) === 200);
});
