// Tests settings of the memory cache, from the environment to the nodes.
import { Resolver } from 'node:dns/promises';
import test, { type ExecutionContext } from 'ava';
import { startDnsServer } from '../../support/dns-server.ts';
import { eventually } from '../../support/eventually.ts';
import { startMemcachedServer } from '../../support/memcached-server.ts';
import { patientClock } from '../../support/memcached-store.ts';
import { startWorker } from '../../support/worker-in-process.ts';

const rules = `
domain: d
descriptors:
  - {key: once, rate_limit: {unit: year, requests_per_unit: 1}}
`;
const memcached = { BACKEND_TYPE: 'memcache' };
const record = '_memcache._tcp.cache.test';
const kit = new URL('../../conformance/tls/', import.meta.url).pathname;

test.serial(
  'MEMSTORE_SRV, MEMSTORE_SRV_REFRESH: the nodes of the record count, and it is resolved at this interval',
  async (t) => {
    const servers = [await startMemcachedServer(t), await startMemcachedServer(t)];
    const dns = await startDnsServer();
    t.teardown(dns.close);
    const { resolveSrv } = Resolver.prototype;
    t.teardown(() => {
      Resolver.prototype.resolveSrv = resolveSrv;
    });
    // The worker queries the name servers of its host, which a test cannot replace; everything else is real.
    Resolver.prototype.resolveSrv = function (name) {
      this.setServers([dns.address]);
      return resolveSrv.call(this, name);
    };
    const list = (index: number) =>
      dns.setSrv(record, [{ target: 'localhost', port: servers[index]?.port ?? 0 }]);
    list(0);
    const worker = await startWorker(t, {
      rules,
      env: { ...memcached, MEMSTORE_SRV: record, MEMSTORE_SRV_REFRESH: '20ms' },
      clock: patientClock,
    });
    t.deepEqual(
      [(await worker.decide('once')).status, (await worker.decide('once')).status],
      [200, 429],
    );
    list(1);
    await eventually(
      'the other node is asked',
      async () => (await worker.decide('once')).status === 200,
    );
  },
);

test.serial('MEMSTORE_MAX_IDLE_CONNS: this many connections are opened', async (t) => {
  for (const [count, opened] of [
    ['5', 5],
    ['-1', 2],
  ] as const) {
    const server = await startMemcachedServer(t);
    const connections = async () => (await server.stats()).get('curr_connections') ?? 0;
    // The querying connection itself; the one used to wait for the server may not be closed yet.
    await eventually('no other client is connected', async () => (await connections()) === 1);
    const worker = await startWorker(t, {
      rules,
      env: { ...memcached, MEMSTORE_HOST_PORT: server.url, MEMSTORE_MAX_IDLE_CONNS: count },
    });
    await eventually('all connections', async () => {
      await Promise.all(Array.from({ length: 200 }, (_, index) => worker.decide(`once=${index}`)));
      return (await connections()) === 1 + opened;
    });
  }
  t.pass();
});

const tlsNames = [
  'MEMSTORE_TLS',
  'MEMSTORE_TLS_CACERT',
  'MEMSTORE_TLS_CLIENT_CERT',
  'MEMSTORE_TLS_CLIENT_KEY',
  'MEMSTORE_TLS_SKIP_HOSTNAME_VERIFICATION',
] as const;

const tls: Record<(typeof tlsNames)[number], string> = {
  MEMSTORE_TLS: 'true',
  MEMSTORE_TLS_CACERT: `${kit}ca.pem`,
  MEMSTORE_TLS_CLIENT_CERT: `${kit}client.pem`,
  MEMSTORE_TLS_CLIENT_KEY: `${kit}client.key`,
  MEMSTORE_TLS_SKIP_HOSTNAME_VERIFICATION: 'true',
};

/** The status of a second hit, with a node whose certificate is for another name, and that requires a client
 * certificate. */
async function hitTwice(t: ExecutionContext, env: Readonly<Record<string, string>>) {
  const { port } = await startMemcachedServer(t, {
    tls: { cert: `${kit}other.pem`, key: `${kit}other.key`, clientCa: `${kit}ca.pem` },
  });
  const worker = await startWorker(t, {
    rules,
    env: { ...memcached, MEMSTORE_HOST_PORT: `localhost:${port}`, ...env },
    clock: patientClock,
  });
  await worker.decide('once');
  return { worker, status: (await worker.decide('once')).status };
}

test.serial('with all TLS settings such a node counts', async (t) => {
  const { worker, status } = await hitTwice(t, tls);
  t.is(status, 429);
  await eventually('the expiry of its certificate is reported', async () =>
    /^client certificate for the store: valid until \d/m.test(await worker.page('/status')),
  );
});

for (const name of tlsNames) {
  test.serial(`${name}: without it that node is unreachable, nothing is counted`, async (t) => {
    const { [name]: _left, ...others } = tls;
    t.is((await hitTwice(t, others)).status, 200);
  });
}
