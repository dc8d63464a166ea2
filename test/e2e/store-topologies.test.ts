// A worker with a cluster, with sentinels and with TLS, told by settings alone.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { authority, serverCertificate } from '../contract/grpc-transport-certificates.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startRedisCluster } from '../support/redis-cluster.ts';
import { startRedisSentinels } from '../support/redis-sentinel.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.ts';

const rules = {
  'limits.yaml': [
    'domain: shop',
    'descriptors:',
    '  - key: user',
    '    rate_limit: {unit: year, requests_per_unit: 2}',
    '  - key: burst',
    '    rate_limit: {unit: second, requests_per_unit: 1000}',
  ].join('\n'),
};

async function decide({ ports }: WorkerProcess, ...entries: { key: string; value: string }[]) {
  const response = await fetch(`http://127.0.0.1:${ports.http}/json`, {
    method: 'POST',
    body: JSON.stringify({
      domain: 'shop',
      descriptors: entries.map((entry) => ({ entries: [entry] })),
    }),
  });
  return response.status;
}

test.serial(
  'a cluster for all limits, and a second store with TLS for those per second',
  async (t) => {
    const cluster = await startRedisCluster(t);
    const folder = createTemporaryFolder(t);
    const path = (name: string) => join(folder, name);
    await writeFile(path('ca.pem'), authority);
    await writeFile(path('cert.pem'), serverCertificate.cert);
    await writeFile(path('key.pem'), serverCertificate.key);
    const tlsPort = await freePort();
    await startRedisServer(t, {
      args: [
        ...['--tls-port', String(tlsPort), '--tls-cert-file', path('cert.pem')],
        ...['--tls-key-file', path('key.pem'), '--tls-ca-cert-file', path('ca.pem')],
        ...['--tls-auth-clients', 'no'],
      ],
    });
    const worker = await startWorkerProcess(t, {
      rules,
      env: {
        REDIS_TYPE: 'CLUSTER',
        REDIS_URL: cluster.url,
        REDIS_POOL_SIZE: '2',
        REDIS_CLUSTER_PIPELINE_PARALLELISM: '9',
        REDIS_PERSECOND: 'true',
        REDIS_PERSECOND_URL: `localhost:${tlsPort}`,
        REDIS_PERSECOND_TLS: 'true',
        REDIS_TLS_CACERT: path('ca.pem'),
        EXPIRATION_JITTER_MAX_SECONDS: '0',
      },
    });
    const users = ['ann', 'bob', 'cat', 'dan', 'eve'].map((value) => ({ key: 'user', value }));
    const burst = { key: 'burst', value: 'x' };
    t.is(await decide(worker, ...users, burst), 200);
    t.is(await decide(worker, ...users), 200);
    for (const user of users) t.is(await decide(worker, user), 429);
    t.regex(worker.output(), /parallelism of 9 is above the pool's size and taken as 2/);
    await eventually('every connection', async () =>
      /main: connected to cluster .*\(6 connections to 3 of 3 masters\).*; per second: connected to .* \(10 of 10 connections\)/.test(
        await worker.page('/status'),
      ),
    );
    const stats = await worker.page('/stats');
    t.regex(stats, /ratelimit\.redis_pool\.cx_active: 6/);
    t.regex(stats, /ratelimit\.redis_per_second_pool\.cx_active: 10/);
    t.regex(stats, /ratelimit\.store\.clock_offset_ms: \d+/);
  },
);

test.serial('sentinels', async (t) => {
  const group = await startRedisSentinels(t, { password: 'open', sentinelPassword: 'watch' });
  const worker = await startWorkerProcess(t, {
    rules,
    env: {
      KVSTORE_TYPE: 'sentinel',
      KVSTORE_URL: group.url,
      KVSTORE_AUTH: 'open',
      KVSTORE_SENTINEL_AUTH: 'watch',
    },
  });
  const user = { key: 'user', value: 'ann' };
  t.deepEqual(
    [await decide(worker, user), await decide(worker, user), await decide(worker, user)],
    [200, 200, 429],
  );
  // Keys of the warm-up expire by themselves.
  t.is(((await group.servers[0].command('KEYS', 'shop_*')) as string[]).length, 1);
  t.false(/open|watch/.test(worker.output()));
});
