// Tests settings of the two key-value stores, from the environment to the servers. Each pair of names is tried on its
// own store; the store for limits per second has a plain one beside it.
import { writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { signToken } from '../../../worker/counters/redis/cloud-iam-token.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { ownedByFile } from '../../support/owner.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { startRedisSentinels } from '../../support/redis-sentinel.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { startWorker, type WorkerInProcess } from '../../support/worker-in-process.ts';

const rules = `
domain: d
descriptors:
  - {key: main, rate_limit: {unit: year, requests_per_unit: 1000}}
  - {key: second, rate_limit: {unit: second, requests_per_unit: 1000}}
`;
/** Keeps tokens and counters the same for a whole test. */
const fixedClock = { ...systemClock, wallMs: () => Date.UTC(2026, 2, 4, 5, 6, 7) };

const other = startRedisServer(ownedByFile(test));

/** The tested store. */
interface StoreUnderTest {
  start(
    t: ExecutionContext,
    env: Readonly<Record<string, string>>,
    clock?: typeof systemClock,
  ): Promise<WorkerInProcess>;
  readonly url: string;
  /** The key of a rule whose hits this store counts. */
  readonly key: string;
  /** The pool in the names of its statistics. */
  readonly pool: string;
}

const stores: readonly StoreUnderTest[] = [
  {
    start: (t, env, clock) => startWorker(t, { rules, env, ...(clock && { clock }) }),
    url: 'KVSTORE_URL',
    key: 'main',
    pool: 'redis_pool',
  },
  {
    async start(t, env, clock) {
      const plain = { KVSTORE_URL: (await other).url, KVSTORE_PERSECOND: 'true' };
      return startWorker(t, { rules, env: { ...plain, ...env }, ...(clock && { clock }) });
    },
    url: 'KVSTORE_PERSECOND_URL',
    key: 'second',
    pool: 'redis_per_second_pool',
  },
];

/** A test for each store; `names` has the names of the settings for the respective store. */
function testBoth<Key extends string>(
  what: string,
  names: Readonly<Record<Key, readonly [main: string, perSecond: string]>>,
  run: (t: ExecutionContext, store: StoreUnderTest, names: Record<Key, string>) => Promise<void>,
): void {
  for (const [index, store] of stores.entries()) {
    const own = Object.fromEntries(
      Object.entries<readonly string[]>(names).map(([key, both]) => [key, both[index] ?? '']),
    ) as Record<Key, string>;
    test.serial(`${Object.values(own).join(', ')}: ${what}`, (t) => run(t, store, own));
  }
}

/** Until `resume`, the server answers no command that writes. */
async function pauseWrites({ command }: RedisServer) {
  await command('CLIENT', 'PAUSE', 60_000, 'WRITE');
  return { resume: () => command('CLIENT', 'UNPAUSE') };
}

async function countIncrements({ command }: RedisServer): Promise<number> {
  const stats = String(await command('INFO', 'commandstats'));
  return Number(/cmdstat_incrby:calls=(\d+)/.exec(stats)?.[1] ?? 0);
}

async function isBlocking({ command }: RedisServer): Promise<boolean> {
  return /blocked_clients:[1-9]/.test(String(await command('INFO', 'clients')));
}

testBoth(
  'counters are stored at the URL, and the type determines how it is read',
  {
    url: ['KVSTORE_URL', 'KVSTORE_PERSECOND_URL'],
    socketType: ['KVSTORE_SOCKET_TYPE', 'KVSTORE_PERSECOND_SOCKET_TYPE'],
  },
  async (t, store, { url, socketType }) => {
    const redis = await startRedisServer(t, { unix: true });
    // A bare name would be taken for a host.
    const path = relative(process.cwd(), redis.url);
    const worker = await store.start(t, { [url]: path, [socketType]: 'unix' });
    t.is((await worker.decide(store.key)).status, 200);
    t.is(await redis.command('DBSIZE'), 1);
  },
);

testBoth(
  'a decision fails when the store has been silent for so long',
  { timeout: ['KVSTORE_TIMEOUT', 'KVSTORE_PERSECOND_TIMEOUT'] },
  async (t, store, { timeout }) => {
    const redis = await startRedisServer(t);
    const clock = createManualClock();
    const worker = await store.start(t, { [store.url]: redis.url, [timeout]: '150ms' }, clock);
    const { resume } = await pauseWrites(redis);
    const decided = worker.decide(store.key);
    await eventually('the store is asked', () => isBlocking(redis));
    clock.advance(150);
    t.is((await decided).status, 400);
    await resume();
  },
);

testBoth(
  'the password is sent',
  { auth: ['KVSTORE_AUTH', 'KVSTORE_PERSECOND_AUTH'] },
  async (t, store, { auth }) => {
    const redis = await startRedisServer(t, { args: ['--requirepass', 'open'], auth: ['open'] });
    const worker = await store.start(t, { [store.url]: redis.url, [auth]: 'open' });
    t.is((await worker.decide(store.key)).status, 200);
  },
);

testBoth(
  'the password in the file is sent',
  { authFile: ['KVSTORE_AUTH_FILE', 'KVSTORE_PERSECOND_AUTH_FILE'] },
  async (t, store, { authFile }) => {
    const redis = await startRedisServer(t, { args: ['--requirepass', 'open'], auth: ['open'] });
    const folder = createTemporaryFolder(t);
    const file = join(folder, 'password');
    await writeFile(file, 'open\n');
    const worker = await store.start(t, { [store.url]: redis.url, [authFile]: file });
    t.is((await worker.decide(store.key)).status, 200);
  },
);

const sentinels = startRedisSentinels(ownedByFile(test), {
  password: 'open',
  sentinelPassword: 'watch',
});

testBoth(
  'the sentinels of the address are asked for the master, with their password',
  {
    type: ['KVSTORE_TYPE', 'KVSTORE_PERSECOND_TYPE'],
    sentinelAuth: ['KVSTORE_SENTINEL_AUTH', 'KVSTORE_PERSECOND_SENTINEL_AUTH'],
    auth: ['KVSTORE_AUTH', 'KVSTORE_PERSECOND_AUTH'],
  },
  async (t, store, { type, sentinelAuth, auth }) => {
    const { url, servers } = await sentinels;
    const before = await countIncrements(servers[0]);
    const worker = await store.start(t, {
      [store.url]: url,
      [type]: 'sentinel',
      [sentinelAuth]: 'watch',
      [auth]: 'open',
    });
    t.is((await worker.decide(store.key)).status, 200);
    t.is(await countIncrements(servers[0]), before + 1);
  },
);

testBoth(
  'so many connections are kept',
  { poolSize: ['KVSTORE_POOL_SIZE', 'KVSTORE_PERSECOND_POOL_SIZE'] },
  async (t, store, { poolSize }) => {
    const redis = await startRedisServer(t);
    const worker = await store.start(t, { [store.url]: redis.url, [poolSize]: '13' });
    await eventually('all connections', async () =>
      (await worker.page('/stats')).includes(`ratelimit.${store.pool}.cx_active: 13\n`),
    );
    t.pass();
  },
);

testBoth(
  'a decision that finds no free connection fails after that wait',
  {
    behavior: ['KVSTORE_POOL_ON_EMPTY_BEHAVIOR', 'KVSTORE_PERSECOND_POOL_ON_EMPTY_BEHAVIOR'],
    waitDuration: [
      'KVSTORE_POOL_ON_EMPTY_WAIT_DURATION',
      'KVSTORE_PERSECOND_POOL_ON_EMPTY_WAIT_DURATION',
    ],
    poolSize: ['KVSTORE_POOL_SIZE', 'KVSTORE_PERSECOND_POOL_SIZE'],
  },
  async (t, store, { behavior, waitDuration, poolSize }) => {
    const redis = await startRedisServer(t);
    const worker = await store.start(t, {
      [store.url]: redis.url,
      [behavior]: 'ERROR',
      [waitDuration]: '120ms',
      [poolSize]: '1',
    });
    const { resume } = await pauseWrites(redis);
    const first = worker.decide(store.key);
    await eventually('the connection is busy', () => isBlocking(redis));
    t.is((await worker.decide(store.key)).status, 400);
    t.true(worker.log.lines.some((line) => line.includes('no connection was free for 120 ms')));
    await resume();
    t.is((await first).status, 200);
  },
);

testBoth(
  'a batch is held back for so long',
  { pipelineWindow: ['KVSTORE_PIPELINE_WINDOW', 'KVSTORE_PERSECOND_PIPELINE_WINDOW'] },
  async (t, store, { pipelineWindow }) => {
    const redis = await startRedisServer(t);
    const worker = await store.start(t, { [store.url]: redis.url, [pipelineWindow]: '200ms' });
    const sentMs = systemClock.monotonicMs();
    t.is((await worker.decide(store.key)).status, 200);
    // A timer may be a millisecond early.
    t.true(systemClock.monotonicMs() - sentMs >= 199);
  },
);

testBoth(
  'the setting has no effect, and a warning is logged',
  { pipelineLimit: ['KVSTORE_PIPELINE_LIMIT', 'KVSTORE_PERSECOND_PIPELINE_LIMIT'] },
  async (t, store, { pipelineLimit }) => {
    const redis = await startRedisServer(t);
    const worker = await store.start(t, { [store.url]: redis.url, [pipelineLimit]: '1' });
    t.is((await worker.decide(store.key, store.key)).status, 200);
    const warning = worker.log.lines.find((line) => line.includes(pipelineLimit)) ?? '';
    t.regex(warning, /^warning .*has no effect/);
  },
);

const cluster = startRedisCluster(ownedByFile(test));

testBoth(
  'so many nodes of a cluster are asked at once',
  {
    parallelism: [
      'KVSTORE_CLUSTER_PIPELINE_PARALLELISM',
      'KVSTORE_PERSECOND_CLUSTER_PIPELINE_PARALLELISM',
    ],
    type: ['KVSTORE_TYPE', 'KVSTORE_PERSECOND_TYPE'],
  },
  async (t, store, { parallelism, type }) => {
    const { url, masters } = await cluster;
    // The same counters each time, so that one of the pauses is at the node called first.
    const worker = await store.start(
      t,
      { [store.url]: url, [type]: 'cluster', [parallelism]: '3' },
      fixedClock,
    );
    const entries = Array.from({ length: 40 }, (_, index) => `${store.key}=${index ** 5}`);
    t.is((await worker.decide(...entries)).status, 200);
    for (const master of masters) t.true((await countIncrements(master)) > 0);
    for (const paused of masters) {
      const { resume } = await pauseWrites(paused);
      const others = masters.filter((master) => master !== paused);
      const before = await Promise.all(others.map(countIncrements));
      const answer = worker.decide(...entries);
      await eventually('the other nodes have counted', async () => {
        const after = await Promise.all(others.map(countIncrements));
        return after.every((count, index) => count > (before[index] ?? 0));
      });
      await resume();
      t.is((await answer).status, 200);
    }
  },
);

testBoth(
  'a token signed for these is the password',
  {
    auth: ['KVSTORE_CLOUDIAM_AUTH', 'KVSTORE_PERSECOND_CLOUDIAM_AUTH'],
    cacheName: ['KVSTORE_CLOUDIAM_CACHE_NAME', 'KVSTORE_PERSECOND_CLOUDIAM_CACHE_NAME'],
    userId: ['KVSTORE_CLOUDIAM_USER_ID', 'KVSTORE_PERSECOND_CLOUDIAM_USER_ID'],
    serverless: ['KVSTORE_CLOUDIAM_SERVERLESS', 'KVSTORE_PERSECOND_CLOUDIAM_SERVERLESS'],
    region: ['KVSTORE_CLOUDIAM_REGION', 'KVSTORE_PERSECOND_CLOUDIAM_REGION'],
  },
  async (t, store, { auth, cacheName, userId, serverless, region }) => {
    // The cloud provider's own names: its library reads them itself.
    process.env['AWS_ACCESS_KEY_ID'] = 'AKID';
    process.env['AWS_SECRET_ACCESS_KEY'] = 'secret';
    const redis = await startRedisServer(t, { args: ['--requirepass', 'admin'], auth: ['admin'] });
    const token = await signToken(
      { cacheName: 'orders', userId: 'limits', serverless: true, region: 'eu-west-1' },
      { accessKeyId: 'AKID', secretAccessKey: 'secret' },
      new Date(fixedClock.wallMs()),
    );
    await redis.command('ACL', 'SETUSER', 'limits', 'on', `>${token}`, '~*', '+@all');
    const worker = await store.start(
      t,
      {
        [store.url]: redis.url,
        [auth]: 'true',
        [cacheName]: 'orders',
        [userId]: 'limits',
        [serverless]: 'true',
        [region]: 'eu-west-1',
      },
      fixedClock,
    );
    t.is((await worker.decide(store.key)).status, 200);
  },
);

test('KVSTORE_LONG_KEYS: a key above 1,024 bytes is counted under a digest, or whole', async (t) => {
  const limited =
    'domain: d\ndescriptors:\n  - {key: main, rate_limit: {unit: year, requests_per_unit: 1}}\n';
  const value = 'v'.repeat(5_000);
  for (const [longKeys, length] of [
    ['hash', 64],
    ['whole', 'd_main__'.length + value.length + 10],
  ] as const) {
    const server = await startRedisServer(t);
    const env = { KVSTORE_URL: server.url, REDIS_LONG_KEYS: longKeys };
    const worker = await startWorker(t, { rules: limited, env, clock: fixedClock });
    const statuses: number[] = [];
    for (let time = 0; time < 2; time++) {
      statuses.push((await worker.decide(`main=${value}`)).status);
    }
    t.deepEqual(statuses, [200, 429]);
    const [key] = (await server.command('KEYS', '*')) as string[];
    t.is(key?.length, length);
  }
});
