// A memory cache that is replaced under load: the SRV record names another one, and the old one is
// stopped when nobody uses it any more.
import { Resolver } from 'node:dns/promises';
import test from 'ava';
import { startDnsServer } from '../../support/dns-server.ts';
import { eventually } from '../../support/eventually.ts';
import { type MemcachedServer, startMemcachedServer } from '../../support/memcached-server.ts';
import { openMemcachedStore } from '../../support/memcached-store.ts';
import { loadPerSecond, startSteadyLoad } from '../../support/steady-load.ts';

const record = '_memcache._tcp.cache.test';
const keys = Array.from({ length: 20 }, (_, index) => `replaced_${index}`);

async function sumCounters(memcached: MemcachedServer): Promise<number> {
  let sum = 0;
  for (const key of keys) sum += Number((await memcached.get(key)) ?? 0);
  return sum;
}

test('a node that is replaced under load costs no decision and no hit', async (t) => {
  const servers = [
    await startMemcachedServer(t),
    await startMemcachedServer(t),
    await startMemcachedServer(t),
  ];
  const dns = await startDnsServer();
  t.teardown(dns.close);
  const resolver = new Resolver({ timeout: 10_000, tries: 1 });
  resolver.setServers([dns.address]);
  const use = ({ port }: MemcachedServer) => dns.setSrv(record, [{ target: 'localhost', port }]);
  const countConnections = async (server: MemcachedServer) =>
    (await server.stats()).get('curr_connections');
  const [first, ...others] = servers as [MemcachedServer, ...MemcachedServer[]];
  /** Of a server that serves nobody but who asks. */
  const unused = 1;

  use(first);
  const store = await openMemcachedStore(t, {
    source: { kind: 'srv', setting: 'MEMSTORE_SRV', name: record, refreshMs: 50 },
    resolveSrv: (name) => resolver.resolveSrv(name),
  });
  const load = startSteadyLoad(store, 60_000, (index) => [
    { key: keys[index % keys.length] ?? '' },
    { key: keys[(index * 7 + 3) % keys.length] ?? '' },
  ]);
  t.teardown(load.stop);
  const goOn = () => {
    const seen = load.results.length;
    return eventually('the load goes on', () => load.results.length > seen + 200);
  };
  await goOn();
  let counted = 0;
  let current = first;
  for (const next of others) {
    use(next);
    await eventually('the other node', () => store.state().detail.endsWith(`:${next.port}`));
    await eventually('nobody uses it', async () => (await countConnections(current)) === unused);
    counted += await sumCounters(current);
    await current.kill();
    await goOn();
    current = next;
  }
  const results = await load.stop();
  await store.settled();
  counted += await sumCounters(current);
  t.deepEqual(
    results.flatMap(({ error }) => error?.message ?? []),
    [],
  );
  t.is(counted, 2 * results.length);
  // A failing node would count as nothing instead of failing decisions, and would be told.
  t.is(store.log.lines.length, others.length);
  t.true(store.log.lines.every((line) => line.includes('the nodes are now')));
  const failures = [...store.metrics.snapshot()].filter(
    ([name, count]) => name.includes('error') && count > 0,
  );
  t.deepEqual(failures, []);
  t.log(`${results.length} sent at ${loadPerSecond}/s over ${others.length} changes, none failed`);
});
