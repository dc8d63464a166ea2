// A master that becomes a replica under load, behind an address that then leads to the new one: what
// was in flight is refused as read-only, and the setting for that decides what becomes of the
// connections.
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../support/eventually.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { openRedisStore } from '../../support/redis-store.ts';
import { loadPerSecond, startSteadyLoad } from '../../support/steady-load.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

const poolSize = 3;
const keys = Array.from({ length: 7 }, (_, index) => `demoted_${index}_`);
const keyOf = (index: number) => keys[index % keys.length] ?? '';

interface Pair {
  readonly url: string;
  readonly heir: RedisServer;
  /** Without losing a hit: the master stops writing until its replica has all, and then is one. */
  swap(): Promise<void>;
}

async function startPair(t: ExecutionContext): Promise<Pair> {
  const master = await startRedisServer(t);
  const heir = await startRedisServer(t, { args: ['--replicaof', `127.0.0.1 ${master.port}`] });
  const proxy = await startTcpProxy(t, master.port);
  const readRole = async (server: RedisServer) =>
    String(await server.command('INFO', 'replication'));
  await eventually('the replica follows', async () =>
    (await readRole(master)).includes('state=online'),
  );
  return {
    url: `127.0.0.1:${proxy.port}`,
    heir,
    async swap() {
      proxy.retarget(heir.port);
      await master.command('FAILOVER');
      await eventually('the master is a replica', async () =>
        (await readRole(master)).includes('role:slave'),
      );
    },
  };
}

test.serial('each connection is refused once and closed, and the next one counts', async (t) => {
  const { url, heir, swap } = await startPair(t);
  const store = await openRedisStore(t, url, { size: poolSize, closeOnReadonlyError: true });
  await eventually('all connections', () => store.connections.active === poolSize);
  const load = startSteadyLoad(store, 20_000, (index) => [{ key: keyOf(index) }]);
  await eventually('the load runs', () => load.results.length > 200);
  await swap();
  const before = load.results.length;
  await eventually('the load goes on', () => load.results.length > before + 500);
  const results = await load.stop();
  const refused = results.filter(({ error }) => error !== undefined);
  for (const { error } of refused) {
    t.is(
      error?.message,
      `key-value store ${url}: READONLY You can't write against a read only replica; REDIS_CLOSE_CONNECTION_ON_READONLY_ERROR=true: the connection is closed, the next one may lead to the master`,
    );
  }
  await eventually(
    'what was closed is replaced',
    () => store.connections.total === poolSize + store.connections.localClose,
  );
  const { localClose } = store.connections;
  t.log(
    `${results.length} sent at ${loadPerSecond}/s, ${refused.length} refused ` +
      `over ${localClose} of ${poolSize} connections`,
  );
  t.true(refused.length > 0);
  // Nothing else was closed, and no connection was refused a second time.
  t.true(localClose >= 1 && localClose <= poolSize);
  for (const key of keys) {
    const answered = results.filter(({ index, error }) => !error && keyOf(index) === key);
    t.is(Number(await heir.command('GET', key)), answered.length, key);
  }
});

test.serial(
  'without the setting connections are kept, and refused until theirs is a master again',
  async (t) => {
    const redis = await startRedisServer(t);
    const store = await openRedisStore(t, redis.url, { size: poolSize });
    await eventually('all connections', () => store.connections.active === poolSize);
    const listClients = async () => {
      const lines = String(await redis.command('CLIENT', 'LIST', 'TYPE', 'normal')).split('\n');
      // All but the one that asks.
      const others = lines.filter((line) => line !== '' && !line.includes('cmd=client'));
      return others.map((line) => /^id=(\d+)/.exec(line)?.[1]).sort();
    };
    const clients = await listClients();
    t.is(clients.length, poolSize);
    const load = startSteadyLoad(store, 20_000, (index) => [{ key: keyOf(index) }]);
    await eventually('the load runs', () => load.results.length > 200);
    await redis.command('REPLICAOF', '127.0.0.1', 1);
    const demotedMs = performance.now();
    await eventually(
      'errors go on',
      () => load.results.filter(({ error }) => error !== undefined).length > 500,
    );
    t.deepEqual(await listClients(), clients);
    const promotingMs = performance.now();
    await redis.command('REPLICAOF', 'NO', 'ONE');
    const promotedMs = performance.now();
    const before = load.results.length;
    await eventually('the load goes on', () => load.results.length > before + 200);
    const results = await load.stop();
    t.deepEqual(await listClients(), clients);
    t.is(store.connections.total, poolSize);
    for (const { error, startedMs, tookMs } of results) {
      const settledMs = startedMs + tookMs;
      if (startedMs > demotedMs && settledMs < promotingMs) {
        t.regex(error?.message ?? 'counted', /: READONLY /);
      } else if (startedMs > promotedMs) {
        t.is(error, undefined);
      }
    }
    for (const key of keys) {
      const answered = results.filter(({ index, error }) => !error && keyOf(index) === key);
      t.is(Number(await redis.command('GET', key)), answered.length, key);
    }
  },
);
