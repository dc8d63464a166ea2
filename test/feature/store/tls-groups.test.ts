// Tests TLS where the address is not the server's own: with sentinels and their master, and with the nodes of a
// cluster. The worker trusts the same CAs for each of them.
import test from 'ava';
import {
  caCertificate,
  clientCertificate,
  misnamedCertificate,
  serverCertificate,
} from '../../contract/grpc-transport-certificates.ts';
import { countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { startRedisCluster } from '../../support/redis-cluster.ts';
import { startRedisSentinels } from '../../support/redis-sentinel.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRecordedRedisStore, type RecordedRedisStore } from '../../support/redis-store.ts';
import { type RedisTlsFiles, writeRedisTls } from '../../support/redis-tls.ts';

const writing = writeRedisTls({
  caCertificate,
  server: serverCertificate,
  client: clientCertificate,
});
test.after.always(async () => (await writing).remove());

const mismatch = "Hostname/IP does not match certificate's altnames";

type Type = 'sentinel' | 'cluster';

function create(
  t: { teardown(task: () => unknown): void },
  url: string,
  type: Type,
  { clientFiles }: RedisTlsFiles,
  skipHostnameVerification = false,
): RecordedRedisStore {
  const tls = { files: clientFiles, skipHostnameVerification };
  const store = createRecordedRedisStore(url, { type, tls });
  t.teardown(() => store.close(0));
  return store;
}

const connect = (store: RecordedRedisStore) => store.connect(AbortSignal.timeout(60_000));

async function count(store: RecordedRedisStore, ...keys: string[]) {
  return countOn(
    store,
    keys.map((key) => createHit({ key })),
  );
}

/** The first warning of a store that cannot connect. */
async function awaitRefusal(store: RecordedRedisStore): Promise<string> {
  const stopping = new AbortController();
  const connecting = store.connect(stopping.signal).catch(() => 'stopped');
  await eventually('a warning', () => store.log.lines.length > 0);
  stopping.abort();
  await connecting;
  return store.log.lines[0] ?? '';
}

test.serial('sentinels and their master are only called over TLS', async (t) => {
  t.timeout(240_000);
  const files = await writing;
  const group = await startRedisSentinels(t, { tls: files.serverArgs });
  const [master, replica] = group.servers;
  const store = create(t, group.url, 'sentinel', files);
  await connect(store);
  t.deepEqual((await count(store, 'tls_')).after, [1]);
  t.is(await master.command('GET', 'tls_'), '1');

  await eventually('the replica has it', async () => (await replica.command('DBSIZE')) === 1);
  const announcement = group.announcement();
  await master.kill();
  await group.setDownAfter(500);
  await announcement;
  await group.setDownAfter();
  await eventually(
    'the new master counts',
    async () => (await count(store, 'after_')).error === undefined,
  );
  t.not(await replica.command('GET', 'after_'), null);

  // The name in a certificate matters for the master and for the sentinels alike.
  await group.agreement(replica);
  await files.reconfigure(replica, caCertificate, misnamedCertificate);
  const ofMaster = await awaitRefusal(create(t, group.url, 'sentinel', files));
  t.true(ofMaster.includes(`: master 127.0.0.1:${replica.tlsPort}: ${mismatch}`), ofMaster);
  const misnamed = await writeRedisTls({
    caCertificate,
    server: misnamedCertificate,
    client: clientCertificate,
  });
  t.teardown(misnamed.remove);
  const sentinel = await startRedisServer(t, {
    tls: misnamed.serverArgs,
    sentinel: [`sentinel monitor main 127.0.0.1 ${replica.tlsPort} 2`],
  });
  const url = `main,127.0.0.1:${sentinel.tlsPort}`;
  const ofSentinel = await awaitRefusal(create(t, url, 'sentinel', files));
  t.true(ofSentinel.includes(`sentinel 127.0.0.1:${sentinel.tlsPort}: ${mismatch}`), ofSentinel);
  const skipping = create(t, url, 'sentinel', files, true);
  await connect(skipping);
  t.deepEqual((await count(skipping, 'skipping_')).after, [1]);
  t.is(await replica.command('GET', 'skipping_'), '1');
});

test.serial('the nodes of a cluster are only called over TLS', async (t) => {
  const files = await writing;
  const cluster = await startRedisCluster(t, { tls: files.serverArgs });
  const keys = Array.from({ length: 20 }, (_, index) => `spread_${index}_`);
  const [first = ''] = cluster.url.split(',');
  let hits = 0;
  const expectCounted = async (store: RecordedRedisStore) => {
    hits++;
    const { error, after } = await count(store, ...keys);
    t.is(error, undefined);
    t.deepEqual(
      after,
      keys.map(() => hits),
    );
  };
  const store = create(t, first, 'cluster', files);
  await connect(store);
  // A connection is listed with its last command, which may have queried the slots.
  await eventually('every master has a connection that counted last', async () => {
    await expectCounted(store);
    let seen = 0;
    for (const { command, tlsPort } of cluster.masters) {
      const clients = String(await command('CLIENT', 'LIST', 'TYPE', 'normal')).split('\n');
      const counting = clients.filter((line) => /cmd=(incrby|expire)/.test(line));
      const isTls = (line: string) => line.includes(` laddr=127.0.0.1:${tlsPort} `);
      t.true(counting.every(isTls), counting.join());
      if (counting.length > 0) seen++;
    }
    return seen === cluster.masters.length;
  });

  for (const node of cluster.masters) {
    await node.command('CONFIG', 'SET', 'cluster-announce-hostname', 'localhost');
    await node.command('CONFIG', 'SET', 'cluster-preferred-endpoint-type', 'hostname');
  }
  await eventually('the names are known', async () => {
    for (const { command } of cluster.masters) {
      const ranges = (await command('CLUSTER', 'SLOTS')) as [0, 0, [string]][];
      if (!ranges.every(([, , [host]]) => host === 'localhost')) return false;
    }
    return true;
  });
  const named = create(t, first, 'cluster', files);
  await connect(named);
  await expectCounted(named);

  for (const node of cluster.masters)
    await files.reconfigure(node, caCertificate, misnamedCertificate);
  const refusal = await awaitRefusal(create(t, first, 'cluster', files));
  t.true(refusal.includes(mismatch), refusal);
  const skipping = create(t, first, 'cluster', files, true);
  await connect(skipping);
  await expectCounted(skipping);
});
