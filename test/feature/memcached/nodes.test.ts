// Tests how memory caches are found and connected to: SRV records of a real DNS server, resolved repeatedly. TLS:
// test/feature/settings/memcached.test.ts.
import { Resolver } from 'node:dns/promises';
import { copyFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { chooseNode } from '../../../worker/counters/memcached/memcached-nodes.ts';
import type { CounterStore } from '../../../worker/counters/store.ts';
import { countOn, createHit } from '../../support/counting.ts';
import { startDnsServer } from '../../support/dns-server.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { type MemcachedServer, startMemcachedServer } from '../../support/memcached-server.ts';
import { createRecordedMemcachedStore, openMemcachedStore } from '../../support/memcached-store.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

const record = '_memcache._tcp.cache.test';
const kit = new URL('../../conformance/tls/', import.meta.url).pathname;

async function startDns(t: ExecutionContext, timeoutMs = 10_000) {
  const dns = await startDnsServer();
  t.teardown(dns.close);
  const resolver = new Resolver({ timeout: timeoutMs, tries: 1 });
  resolver.setServers([dns.address]);
  const setNodes = (...servers: readonly MemcachedServer[]) =>
    dns.setSrv(
      record,
      servers.map(({ port }) => ({ target: 'localhost', port })),
    );
  return { dns, setNodes, resolveSrv: (name: string) => resolver.resolveSrv(name) };
}

async function countOne(store: CounterStore, key: string): Promise<number | undefined> {
  const { error, after } = await countOn(store, [createHit({ key })]);
  if (error !== undefined) throw error;
  return after[0];
}

const keys = Array.from({ length: 20 }, (_, index) => `srv_${index}`);

test('the nodes of a record are used in the order of their texts', async (t) => {
  const servers = await Promise.all([1, 2, 3].map(() => startMemcachedServer(t)));
  const { setNodes, resolveSrv } = await startDns(t);
  setNodes(...servers);
  const source = { kind: 'srv', name: record, setting: 'MEMCACHE_SRV', refreshMs: 0 } as const;
  const store = await openMemcachedStore(t, { source, resolveSrv });
  for (const key of keys) t.is(await countOne(store, key), 1);
  await store.settled();
  const sorted = servers.toSorted((a, b) => (String(a.port) < String(b.port) ? -1 : 1));
  for (const key of keys) {
    const { node } = chooseNode(key, 3, 1);
    t.is(await sorted[node]?.get(key), '1', key);
  }
  t.is(
    store.state().detail,
    `memory cache ${sorted.map(({ port }) => `localhost:${port}`).join(', ')}`,
  );
});

test('a changed record changes the nodes; a failing query does not', async (t) => {
  const [first, second] = [await startMemcachedServer(t), await startMemcachedServer(t)];
  const { dns, setNodes, resolveSrv } = await startDns(t);
  setNodes(first);
  const source = { kind: 'srv', name: record, setting: 'MEMCACHE_SRV', refreshMs: 20 } as const;
  const store = await openMemcachedStore(t, { source, resolveSrv });
  t.is(await countOne(store, 'moving_'), 1);
  await store.settled();
  t.is(await first.get('moving_'), '1');

  setNodes(second);
  await eventually('the other node', () => store.state().detail.endsWith(`:${second.port}`));
  t.true(
    store.log.lines.includes(
      `notice memory cache: the nodes are now localhost:${second.port}, were localhost:${first.port}`,
    ),
  );
  t.is(await countOne(store, 'moving_'), 1);
  await store.settled();
  t.is(await second.get('moving_'), '1');
  await eventually('the old connections are closed', async () => {
    // Only the test's own connection remains.
    return (await first.stats()).get('curr_connections') === (await idleConnections(t));
  });

  dns.behave('failing');
  await eventually('the failure is logged', () =>
    store.log.lines.some((line) => line.includes('cannot be looked up')),
  );
  const { asked } = dns;
  await eventually('more DNS requests', () => dns.asked > asked + 2);
  t.is(await countOne(store, 'moving_'), 2);
  const logged = store.log.lines.filter((line) => line.includes('cannot be looked up'));
  t.is(logged.length, 1);
  t.regex(
    logged[0] ?? '',
    /^warning .* _memcache\._tcp\.cache\.test .*; the known ones stay in use$/,
  );

  dns.behave('normal');
  setNodes(first, second);
  await eventually('both nodes', () => store.state().detail.includes(`:${first.port}`));
  t.true(store.log.lines.includes('notice memory cache: the nodes can be looked up again'));
});

/** The connections of a memcached that only the test itself uses. */
async function idleConnections(t: ExecutionContext): Promise<number | undefined> {
  return (await (await startMemcachedServer(t)).stats()).get('curr_connections');
}

test('hits that are in flight to a node that leaves the list are still added', async (t) => {
  const [first, second] = [await startMemcachedServer(t), await startMemcachedServer(t)];
  const { setNodes, resolveSrv } = await startDns(t);
  setNodes(first);
  const source = { kind: 'srv', name: record, setting: 'MEMCACHE_SRV', refreshMs: 20 } as const;
  const store = await openMemcachedStore(t, { source, resolveSrv });
  let sent = 0;
  // Some are in flight whenever the list changes.
  const countSome = async () => {
    await Promise.all(Array.from({ length: 20 }, () => countOne(store, `leaving_${sent++ % 7}`)));
  };
  for (const node of [second, first, second, first, second]) {
    await countSome();
    setNodes(node);
    while (!store.state().detail.endsWith(`:${node.port}`)) await countSome();
  }
  await store.settled();
  let counted = 0;
  for (const node of [first, second]) {
    for (let key = 0; key < 7; key++) counted += Number((await node.get(`leaving_${key}`)) ?? 0);
  }
  t.is(counted, sent);
});

for (const how of ['failing', 'silent', 'normal'] as const) {
  test(`the start fails when the record cannot be resolved: ${how}`, async (t) => {
    const { dns, resolveSrv } = await startDns(t, how === 'silent' ? 200 : undefined);
    dns.behave(how);
    const store = createRecordedMemcachedStore({
      source: { kind: 'srv', name: record, setting: 'MEMCACHE_SRV', refreshMs: 20 },
      resolveSrv,
    });
    t.teardown(() => store.close(0));
    const error = await t.throwsAsync(store.connect(AbortSignal.timeout(60_000)));
    t.like(error, { code: 'cannot_start' });
    t.regex(
      error?.message ?? '',
      /^memory cache: the nodes of _memcache\._tcp\.cache\.test cannot be looked up \(.+\); name an SRV record that exists in MEMCACHE_SRV,/,
    );
  });
}

test('an answer about the nodes that arrives after the close changes nothing', async (t) => {
  const toRecords = (port: number) => [{ name: 'localhost', port }];
  const late = Promise.withResolvers<ReturnType<typeof toRecords>>();
  let asked = 0;
  const store = await openMemcachedStore(t, {
    source: { kind: 'srv', name: record, setting: 'MEMCACHE_SRV', refreshMs: 1 },
    resolveSrv: async () => (asked++ === 0 ? toRecords(1) : late.promise),
  });
  await eventually('another query', () => asked > 1);
  await store.close(0);
  late.resolve(toRecords(2));
  await new Promise(setImmediate);
  t.false(store.log.lines.some((line) => /the nodes are now/.test(line)));
});

test('the start can be aborted during the DNS query', async (t) => {
  const store = createRecordedMemcachedStore({
    source: { kind: 'srv', name: record, setting: 'MEMCACHE_SRV', refreshMs: 0 },
    resolveSrv: () => new Promise(() => {}),
  });
  t.teardown(() => store.close(0));
  const stopping = new AbortController();
  const starting = store.connect(stopping.signal);
  const reason = new Error('the process is stopping');
  stopping.abort(reason);
  t.is(await t.throwsAsync(starting), reason);
});

test('without a node everything counts as 0, and that is logged', async (t) => {
  const store = await openMemcachedStore(t, { urls: [] });
  t.is(await countOne(store, 'nowhere_'), 1);
  t.is(await countOne(store, 'nowhere_'), 1);
  t.deepEqual(store.log.lines, ['error memory cache: no node is known, so nothing is counted']);
  t.is(store.metrics.counter('ratelimit.memcache.multiget.__code=error').value, 2);
});

test('the start fails when a TLS file is invalid', async (t) => {
  const files = { ca: `${kit}server.key`, cert: undefined, key: undefined };
  const store = createRecordedMemcachedStore({
    urls: ['localhost:1'],
    tls: { files, skipHostnameVerification: false },
  });
  t.teardown(() => store.close(0));
  const error = await t.throwsAsync(store.connect(AbortSignal.timeout(60_000)));
  t.like(error, { code: 'cannot_start' });
  t.regex(error?.message ?? '', /^memory cache: .*server\.key is not a certificate/);
});

test('a TLS file that becomes invalid is reported, and the previous one stays in use', async (t) => {
  const ca = join(createTemporaryFolder(t), 'ca.pem');
  copyFileSync(`${kit}ca.pem`, ca);
  const clock = createManualClock();
  const files = { ca, cert: undefined, key: undefined };
  const tls = { files, skipHostnameVerification: false };
  const { log } = await openMemcachedStore(t, { urls: ['localhost:1'], tls, clock });
  writeFileSync(ca, '');
  clock.advance(60_000);
  const isReported = () =>
    log.lines.some((line) => line.endsWith('; the previous files stay in use'));
  await t.notThrowsAsync(eventually('the report', isReported));
});
