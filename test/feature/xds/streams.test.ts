// Tests discovery over the network: both protocols and the dedicated service, from a snapshot to what a client
// receives, and the record of it.
import test from 'ava';
import type {
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from '../../../shared/wire/discovery-messages.ts';
import {
  callDiscovery,
  discoveryProtos,
  noMetrics,
  snapshotOf,
  startAds,
} from '../../support/ads-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const { StreamAggregatedResources: sotw, DeltaAggregatedResources: delta } =
  discoveryProtos.aggregated;
const { StreamRlsConfigs: dedicated } = discoveryProtos.rateLimitConfig;

const first = snapshotOf({ shop: 'one', mail: 'one' });
const second = snapshotOf({ shop: 'two', mail: 'one' });

const node = {
  id: 'worker-1',
  cluster: 'edge',
  metadata: { fields: { team: { stringValue: 'a' }, size: { numberValue: 3 } } },
};

function accept(response: DiscoveryResponseMessage): DiscoveryRequestMessage {
  return { node, versionInfo: response.versionInfo ?? '', responseNonce: response.nonce ?? '' };
}

function contents({ resources = [] }: DiscoveryResponseMessage): string[] {
  return resources.map(({ value }) => value?.toString() ?? '');
}

test('a worker gets everything, then each change, and the record shows its version', async (t) => {
  const ads = await startAds(t, { snapshot: first });
  const worker = callDiscovery(t, ads.port, sotw, { node });
  const one = await worker.next();
  t.is(one.versionInfo, first.version);
  t.is(one.typeUrl, 'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig');
  t.deepEqual(contents(one), ['one', 'one']);
  t.is(one.resources?.[0]?.type_url, one.typeUrl);
  worker.send(accept(one));
  await eventually('the ACK is recorded', () => ads.server.workers.list()[0]?.acked !== undefined);
  ads.set(second);
  const two = await worker.next();
  t.deepEqual(contents(two), ['one', 'two']);
  worker.send({ ...accept(one), responseNonce: two.nonce ?? '', errorDetail: { message: 'bad' } });
  await eventually(
    'the NACK is recorded',
    () => ads.server.workers.list()[0]?.nacked !== undefined,
  );

  const [entry] = ads.server.workers.list();
  t.like(entry, {
    node: { id: 'worker-1', cluster: 'edge' },
    mode: 'sotw',
    sent: { version: second.version },
    acked: { version: first.version },
    nacked: { version: second.version, text: 'bad' },
  });
  t.deepEqual([...(entry?.node.metadata ?? [])].sort(), [
    ['size', '3'],
    ['team', 'a'],
  ]);
  t.regex(entry?.address ?? '', /^(127\.0\.0\.1|\[::ffff:127\.0\.0\.1\]|\[::1\]):\d+$/);
  t.true(Math.abs((entry?.sinceMs ?? 0) - Date.now()) < 60_000);
  const refusals = ads.log.lines.filter((line) => line.includes('refused version'));
  t.is(refusals.length, 1);
  t.true(refusals[0]?.startsWith("warning xDS: worker 'worker-1' at "));
  t.true(refusals[0]?.endsWith(`refused version ${second.version}: bad`));

  worker.close();
  await eventually('it is gone', () => ads.server.workers.list().length === 0);
});

test('after a restart of the control plane, workers that hold the version get nothing', async (t) => {
  const before = await startAds(t, { snapshot: first });
  const worker = callDiscovery(t, before.port, sotw, { node });
  const one = await worker.next();
  worker.send(accept(one));
  const ended = worker.status();
  await before.stop();
  t.is((await ended).code, 14);
  worker.close();

  const sent: number[] = [];
  const after = await startAds(t, {
    snapshot: snapshotOf({ mail: 'one', shop: 'one' }),
    metrics: { ...noMetrics, responseSent: (_mode, bytes) => void sent.push(bytes) },
  });
  const byVersion = callDiscovery(t, after.port, sotw, { ...accept(one) });
  const byResources = callDiscovery(t, after.port, delta);
  const held = [...first.resources].map(([name, { version }]) => [name, version] as const);
  byResources.send({ node, initialResourceVersions: Object.fromEntries(held) });
  await eventually('both are known', () => after.server.workers.list().length === 2);
  for (const { acked } of after.server.workers.list()) t.is(acked?.version, first.version);
  t.deepEqual(sent, []);
  after.set(second);
  t.is((await byVersion.next()).versionInfo, second.version);
  t.deepEqual(
    (await byResources.next()).resources?.map(({ name }) => name),
    ['shop'],
  );
});

test('streams, responses and answers are counted by protocol', async (t) => {
  const counted: string[] = [];
  const open: Record<string, number> = {};
  const ads = await startAds(t, {
    snapshot: first,
    metrics: {
      streams(mode, count) {
        open[mode] = count;
      },
      responseSent: (mode, bytes) => void counted.push(`${mode} sent ${bytes > 0}`),
      acked: (mode) => void counted.push(`${mode} acked`),
      nacked: (mode) => void counted.push(`${mode} nacked`),
      dropped: (reason) => void counted.push(reason),
    },
  });
  const worker = callDiscovery(t, ads.port, sotw, { node });
  worker.send(accept(await worker.next()));
  const other = callDiscovery(t, ads.port, delta, { node: { ...node, id: 'other' } });
  const one = await other.next();
  other.send({ responseNonce: one.nonce ?? '', errorDetail: { message: 'no' } });
  await eventually('both have answered', () => counted.length === 4);
  t.deepEqual(counted.sort(), ['delta nacked', 'delta sent true', 'sotw acked', 'sotw sent true']);
  t.deepEqual(open, { sotw: 1, delta: 1 });
  other.close();
  await eventually('one has left', () => open['delta'] === 0);
  t.is(open['sotw'], 1);
});

test('the provider decides by node, and a node whose choice changes is notified', async (t) => {
  const ads = await startAds(t, { snapshot: first });
  ads.choose(({ cluster }) => (cluster === 'edge' ? first : undefined));
  const edge = callDiscovery(t, ads.port, sotw, { node });
  t.is((await edge.next()).versionInfo, first.version);
  const other = callDiscovery(t, ads.port, sotw, { node: { id: 'other', cluster: 'core' } });
  await eventually('both are known', () => ads.server.workers.list().length === 2);
  t.is(ads.server.workers.list()[1]?.sent, undefined);
  ads.choose(({ cluster }) => (cluster === 'edge' ? first : second));
  t.is((await other.next()).versionInfo, second.version);
  t.deepEqual(edge.waiting, []);
});

test('the dedicated service streams without a type, and refuses another', async (t) => {
  const ads = await startAds(t, { snapshot: first });
  const worker = callDiscovery(t, ads.port, dedicated, { node, typeUrl: '' });
  t.is((await worker.next()).versionInfo, first.version);
  worker.send({ node, typeUrl: 'type.googleapis.com/other.Type' });
  const { code, details } = await worker.status();
  t.is(code, 3);
  t.is(details, "type_url 'type.googleapis.com/other.Type' is not served");
});

test('other types on an aggregated stream stay unanswered; the node of the first request counts', async (t) => {
  const ads = await startAds(t, { snapshot: first });
  const worker = callDiscovery(t, ads.port, sotw, {
    node,
    typeUrl: 'type.googleapis.com/other.Type',
  });
  worker.send({});
  t.is((await worker.next()).versionInfo, first.version);
  t.is(ads.server.workers.list()[0]?.node.id, 'worker-1');
  t.is(ads.log.lines.filter((line) => line.includes('other.Type')).length, 1);
});

test('a client that sends no more gets a clean end', async (t) => {
  const ads = await startAds(t, { snapshot: first });
  const worker = callDiscovery(t, ads.port, sotw, { node });
  await worker.next();
  worker.halfClose();
  t.is((await worker.status()).code, 0);
});

test('many workers that leave and connect take a few lines of the log', async (t) => {
  // All within the interval of one line.
  const ads = await startAds(t, { snapshot: first, clock: createManualClock() });
  const workers = Array.from({ length: 20 }, () => callDiscovery(t, ads.port, sotw));
  for (const worker of workers) worker.send({ node });
  await Promise.all(workers.map((worker) => worker.next()));
  for (const worker of workers) worker.close();
  await eventually('all are gone', () => ads.server.workers.list().length === 0);
  await ads.stop();
  t.deepEqual(
    ads.log.lines.map((line) => line.replace(/ at \S+/, '')),
    [
      "info xDS: worker 'worker-1' connected (sotw)",
      "info xDS: worker 'worker-1' left (sotw)",
      "info xDS: worker 'worker-1' connected (sotw) (and 18 more like it)",
      "info xDS: worker 'worker-1' left (sotw) (and 18 more like it)",
    ],
  );
});
