// Tests one stream of a real server, at the limits of what a client may send and of what is logged about it.
import { constants } from 'node:http2';
import test from 'ava';
import {
  callDiscovery,
  discoveryProtos,
  noMetrics,
  snapshotOf,
  startAds,
} from '../../../test/support/ads-fixture.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { frame, openOn, openRaw, request } from '../../../test/support/raw-discovery.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;
const snapshot = snapshotOf({ shop: 'one' });

test('a request at the limits of names, versions and nodes is answered', async (t) => {
  const ads = await startAds(t, { snapshot });
  const instance = { fields: { 'ratelane.instance': { stringValue: 'i'.repeat(1_024) } } };
  for (const message of [
    { resourceNames: Array.from({ length: 10_000 }, (_, at) => `n${at}`) },
    { resourceNames: ['x'.repeat(1_024)] },
    { versionInfo: 'x'.repeat(1_024) },
    { node: { id: 'x'.repeat(16 * 1_024 - 1), cluster: 'y' } },
    { node: { id: 'w', metadata: instance } },
  ]) {
    const worker = callDiscovery(t, ads.port, sotw, message);
    t.is((await worker.next()).nonce, '1');
    t.is(ads.server.workers.list().at(-1)?.node.holds, message.versionInfo);
    worker.close();
  }
});

test('a node beyond its limit is refused by name', async (t) => {
  const ads = await startAds(t, { snapshot });
  const { stream, status } = await openRaw(t, ads);
  stream.write(request({ node: { id: 'x'.repeat(16 * 1_024), cluster: 'y' } }));
  t.is(await status(), '3 the node is too large');
});

test('a request costs one token more for each 64 KiB of what a stream may send at once', async (t) => {
  const ads = await startAds(t, {
    snapshot,
    limits: { requestBurst: 2, requestsPerSecond: 0.001 },
  });
  const named = (last: number) =>
    request({ resourceNames: [...Array(130).fill('x'.repeat(1_000)), 'y'.repeat(last)] });
  // A length prefix takes five bytes itself.
  const lastFor = (bytes: number) => 500 + bytes + 5 - named(500).length;
  const within = await openRaw(t, ads);
  within.stream.write(named(lastFor(2 * 64 * 1_024 - 1)));
  await eventually('it is served', () => ads.server.workers.list().length === 1);
  const beyond = await openRaw(t, ads);
  beyond.stream.write(named(lastFor(2 * 64 * 1_024)));
  t.is(await beyond.status(), '8 too many requests on this stream');
});

test('headers of up to 16 KiB, counted as HTTP/2 does, are accepted, and larger ones are not', async (t) => {
  const ads = await startAds(t, { snapshot });
  const { session } = await openRaw(t, ads);
  const others = Object.entries({
    ...{ ':method': 'POST', ':path': sotw.path, ':scheme': 'http' },
    ...{
      ':authority': `127.0.0.1:${ads.port}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    },
  });
  const bytes = others.reduce((sum, [name, value]) => sum + name.length + value.length + 32, 0);
  const open = (more: number) =>
    openOn(session, { x: 'x'.repeat(16 * 1_024 - bytes - 33 + more) }).stream;
  const within = open(0);
  within.write(request());
  await eventually('it is served', () => ads.server.workers.list().length === 1);
  const beyond = open(1);
  await eventually('it is reset', () => beyond.closed);
  t.is(beyond.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  t.false(within.closed);
});

test('messages after the end of a stream are dropped', async (t) => {
  const dropped: string[] = [];
  const clock = createManualClock();
  const limits = { requestMs: 1_000 };
  const metrics = { ...noMetrics, dropped: (reason: string) => void dropped.push(reason) };
  const ads = await startAds(t, { snapshot, clock, limits, metrics });
  const { session, stream, status } = await openRaw(t, ads);
  // Sent in several frames; the second message is not complete.
  stream.write(
    Buffer.concat([frame(Buffer.from([0xff])), frame(Buffer.alloc(100_000)).subarray(1)]),
  );
  t.regex(await status(), /^3 malformed request/);
  await new Promise((resolve) => session.ping(resolve));
  clock.advance(limits.requestMs);
  t.deepEqual(dropped, ['bad_request']);
});

test('a stream that has sent no request is not notified of a change', async (t) => {
  let streams = 0;
  const metrics = { ...noMetrics, streams: (_mode: string, open: number) => (streams = open) };
  const ads = await startAds(t, { snapshot, metrics });
  const { stream } = await openRaw(t, ads);
  await eventually('it is open', () => streams === 1);
  const asked: string[] = [];
  ads.choose(({ id }) => {
    asked.push(id);
    return snapshot;
  });
  await new Promise((resolve) => setImmediate(resolve));
  t.deepEqual(asked, []);
  stream.write(request());
  await eventually('it asks', () => asked.length > 0);
  t.deepEqual(asked, ['worker-1']);
});

test('the log shows 200 characters of an id and 1,000 of a refusal', async (t) => {
  const ads = await startAds(t, { snapshot });
  for (const [id, text, shown] of [
    ['a'.repeat(200), 'x'.repeat(1_000), 'x'.repeat(1_000)],
    ['a'.repeat(201), 'y'.repeat(1_001), `${'y'.repeat(1_000)}...`],
  ] as const) {
    const worker = callDiscovery(t, ads.port, sotw, { node: { id } });
    const { nonce = '', versionInfo } = await worker.next();
    worker.send({ responseNonce: nonce, errorDetail: { message: text } });
    await eventually('it is recorded', () => ads.server.workers.list()[0]?.nacked !== undefined);
    worker.close();
    await eventually('it has left', () => ads.server.workers.list().length === 0);
    const line = ads.log.lines.find((each) => each.includes(`: ${text[0]}`)) ?? '';
    t.true(line.startsWith(`warning xDS: worker '${'a'.repeat(200)}' at 127.0.0.1:`));
    t.true(line.endsWith(` refused version ${versionInfo}: ${shown}`));
    // Each version is sent once.
    ads.set(snapshotOf({ shop: 'two' }));
  }
});
