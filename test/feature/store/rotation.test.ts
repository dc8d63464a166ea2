// Secrets that are replaced under load, the old ones refused, and the connections that were opened
// with them killed: between two batches that costs no decision. What is in flight on a connection that
// is killed fails, for it may have been counted and must not be sent again.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createFileCredentials } from '../../../worker/counters/redis/credentials.ts';
import {
  authority,
  clientCertificate,
  secondAuthority,
  secondClientCertificate,
  secondServerCertificate,
  serverCertificate,
} from '../../contract/grpc-transport-certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import {
  createRecordedRedisStore,
  openRedisStore,
  type RecordedRedisStore,
  type RecordedRedisStoreOptions,
} from '../../support/redis-store.ts';
import { writeRedisTls } from '../../support/redis-tls.ts';
import { loadPerSecond, type SteadyLoad, startSteadyLoad } from '../../support/steady-load.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const poolSize = 3;
const rotations = 10;
const key = 'rotated_';

async function setUpPassword(t: ExecutionContext) {
  const redis = await startRedisServer(t);
  const folder = createTemporaryFolder(t);
  const file = join(folder, 'auth');
  await redis.command('ACL', 'SETUSER', 'limits', 'on', '>secret0', '~*', '+@all');
  await writeFile(file, 'limits:secret0\n');
  const store = await openAll(t, redis.url, { readCredentials: createFileCredentials(file) });
  return {
    redis,
    store,
    /** Both are good until the file has the new one. */
    async replaceSecret(from: string, to: string) {
      await redis.command('ACL', 'SETUSER', 'limits', `>${to}`);
      await writeFile(file, `limits:${to}\n`);
      await redis.command('ACL', 'SETUSER', 'limits', `<${from}`);
    },
    killAll: () => redis.command('CLIENT', 'KILL', 'USER', 'limits'),
  };
}

async function openAll(t: ExecutionContext, url: string, options: RecordedRedisStoreOptions) {
  const store = await openRedisStore(t, url, { size: poolSize, ...options });
  await eventually('all connections', () => store.connections.active === poolSize);
  return store;
}

function startLoad(t: ExecutionContext, store: RecordedRedisStore): SteadyLoad {
  const load = startSteadyLoad(store, 5_000, () => [{ key }]);
  t.teardown(load.stop);
  return load;
}

async function goOn({ results }: SteadyLoad): Promise<void> {
  const seen = results.length;
  await eventually('the load goes on', () => results.length > seen + 100);
}

function countEnded({ connections }: RecordedRedisStore): number {
  return connections.total - connections.active;
}

/** The load waits until the worker has noticed every loss. */
async function killBetweenBatches(
  store: RecordedRedisStore,
  load: SteadyLoad,
  kill: () => Promise<unknown>,
): Promise<void> {
  await load.between(async () => {
    const endedBefore = countEnded(store);
    await kill();
    await eventually('the losses are noticed', () => countEnded(store) === endedBefore + poolSize);
  });
}

async function expectRefusal(
  t: ExecutionContext,
  url: string,
  options: RecordedRedisStoreOptions,
  reason: RegExp,
): Promise<void> {
  const store = createRecordedRedisStore(url, options);
  t.teardown(() => store.close(0));
  const stopping = new AbortController();
  const connecting = store.connect(stopping.signal).catch(() => 'stopped');
  await eventually('a warning', () => store.log.lines.length > 0);
  t.regex(store.log.lines[0] ?? '', reason);
  stopping.abort();
  await connecting;
}

/** All that was sent, and every hit counted once. */
async function expectNoFailure(t: ExecutionContext, load: SteadyLoad, redis: RedisServer) {
  const results = await load.stop();
  t.deepEqual(
    results.flatMap(({ error }) => error?.message ?? []),
    [],
  );
  t.is(await redis.command('GET', key), String(results.length));
  return results;
}

test.serial('a password in a file, replaced under load: no decision fails', async (t) => {
  const { redis, store, replaceSecret, killAll } = await setUpPassword(t);
  const load = startLoad(t, store);
  await goOn(load);
  for (let round = 0; round < rotations; round++) {
    await replaceSecret(`secret${round}`, `secret${round + 1}`);
    await killBetweenBatches(store, load, killAll);
    await expectRefusal(t, redis.url, { auth: `limits:secret${round}` }, /: AUTH: WRONGPASS /);
    await eventually('all connections', () => store.connections.active === poolSize);
    await goOn(load);
  }
  const results = await expectNoFailure(t, load, redis);
  t.is(store.connections.total, poolSize * (rotations + 1));
  const slowest = Math.round(Math.max(...results.map(({ tookMs }) => tookMs)));
  t.log(
    `${results.length} sent at ${loadPerSecond}/s over ${rotations} rotations, none failed; ` +
      `slowest ${slowest} ms, worst lag of the test ${Math.round(load.worstLagMs)} ms`,
  );
});

test.serial('connections killed at any moment: only what is in flight then fails', async (t) => {
  const { redis, store, replaceSecret, killAll } = await setUpPassword(t);
  const load = startLoad(t, store);
  await goOn(load);
  const spans: { readonly fromMs: number; readonly toMs: number }[] = [];
  for (let round = 0; round < rotations; round++) {
    await replaceSecret(`secret${round}`, `secret${round + 1}`);
    const before = store.connections.total;
    const fromMs = performance.now();
    await killAll();
    await eventually('each is replaced', () => store.connections.total === before + poolSize);
    spans.push({ fromMs, toMs: performance.now() });
    await goOn(load);
  }
  const results = await load.stop();
  const failed = results.filter(({ error }) => error !== undefined);
  for (const { error, startedMs, tookMs } of failed) {
    const isThen = spans.some(
      ({ fromMs, toMs }) => startedMs <= toMs && startedMs + tookMs >= fromMs,
    );
    t.true(isThen, error?.message);
    t.regex(error?.message ?? '', /: the connection was lost before the answer came$/);
  }
  t.log(`${failed.length} of ${results.length} failed over ${rotations} rotations`);
  const counted = Number(await redis.command('GET', key));
  t.true(results.length - failed.length <= counted && counted <= results.length);
});

test.serial(
  'certificates and their authority, replaced under load: no decision fails',
  async (t) => {
    const first = { authority, server: serverCertificate, client: clientCertificate };
    const second = {
      authority: secondAuthority.cert,
      server: secondServerCertificate,
      client: secondClientCertificate,
    };
    const [files, old] = [await writeRedisTls(first), await writeRedisTls(first)];
    t.teardown(files.remove);
    t.teardown(old.remove);
    const redis = await startRedisServer(t, { tls: files.serverArgs });
    const url = `127.0.0.1:${redis.tlsPort}`;
    const toTls = (clientFiles: typeof files.clientFiles) => ({
      files: clientFiles,
      skipHostnameVerification: false,
    });
    const store = await openAll(t, url, { tls: toTls(files.clientFiles) });
    const load = startLoad(t, store);
    await goOn(load);
    await files.reconfigure(redis, second.authority, second.server);
    await files.writeClient(second.authority, second.client);
    await killBetweenBatches(store, load, () => redis.command('CLIENT', 'KILL', 'TYPE', 'normal'));
    await eventually('all connections', () => store.connections.active === poolSize);
    await goOn(load);
    await expectNoFailure(t, load, redis);
    t.is(store.connections.total, 2 * poolSize);
    // The old authority does not vouch for the server, nor for a client.
    await expectRefusal(t, url, { tls: toTls(old.clientFiles) }, /unable to verify|self-signed/);
    const mixed = { ...old.clientFiles, ca: files.clientFiles.ca };
    await expectRefusal(t, url, { tls: toTls(mixed) }, /alert|closed|ECONNRESET/);
  },
);
