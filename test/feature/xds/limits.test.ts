// Tests the ADS server against clients that are slow, broken or hostile: each is limited or ended with a reason, and
// the others are not affected.
import { once } from 'node:events';
import { connect, constants } from 'node:http2';
import test from 'ava';
import type { DropReason } from '../../../control-plane/server/xds/discovery-stream.ts';
import { defaultLimits } from '../../../control-plane/server/xds/limits.ts';
import {
  callDiscovery,
  discoveryProtos,
  noMetrics,
  snapshotOf,
  startAds,
} from '../../support/ads-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { frame, openOn, openRaw, request } from '../../support/raw-discovery.ts';
import { startTcpProxy } from '../../support/tcp-proxy.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;
const delta = discoveryProtos.aggregated.DeltaAggregatedResources;
const small = snapshotOf({ shop: 'one' });
const large = snapshotOf({ shop: 'x'.repeat(8_000_000) });
const node = { id: 'worker-1' };

function recordDrops() {
  const reasons: DropReason[] = [];
  return {
    reasons,
    metrics: { ...noMetrics, dropped: (reason: DropReason) => void reasons.push(reason) },
  };
}

const badRequests: readonly {
  readonly title: string;
  readonly bytes: Buffer;
  readonly status: string;
}[] = [
  {
    title: 'bytes that are no request',
    bytes: frame(Buffer.from([0xff, 0xff, 0xff])),
    status: '3 malformed request: index out of range: 3 + 1 > 3',
  },
  {
    title: 'a request without a type',
    bytes: frame(sotw.requestSerialize({ node })),
    status: '3 type_url is required',
  },
  {
    title: 'a compressed request',
    bytes: frame(Buffer.from('any'), 1),
    status: '12 compressed requests are not supported',
  },
  {
    title: 'a request above the limit',
    bytes: request({ versionInfo: 'x'.repeat(2_000) }),
    status: '8 received message larger than max (2082 vs. 1000)',
  },
  {
    title: 'a name above the limit',
    bytes: request({ resourceNames: ['x'.repeat(1_025)] }),
    status: '3 a resource name or a version is too long',
  },
  {
    title: 'a version above the limit',
    bytes: request({ versionInfo: 'x'.repeat(1_025) }),
    status: '3 a resource name or a version is too long',
  },
  {
    title: 'too many names',
    bytes: request({ resourceNames: Array.from({ length: 10_001 }, (_, at) => `n${at}`) }),
    status: '8 too many resource names',
  },
];

for (const { title, bytes, status } of badRequests) {
  test(`${title}: the stream ends with a reason, and the server continues`, async (t) => {
    const { metrics, reasons } = recordDrops();
    const limits = title.includes('request above') ? { maxRequestBytes: 1_000 } : {};
    const ads = await startAds(t, { snapshot: small, limits, metrics });
    const raw = await openRaw(t, ads);
    raw.stream.write(bytes);
    t.is(await raw.status(), status);
    if (status.startsWith('3')) t.deepEqual(reasons, ['bad_request']);
    const worker = callDiscovery(t, ads.port, sotw, { node });
    t.is((await worker.next()).versionInfo, small.version);
  });
}

test('a request that ends within a message is an error', async (t) => {
  const ads = await startAds(t, { snapshot: small });
  const raw = await openRaw(t, ads);
  raw.stream.end(request().subarray(0, 9));
  t.is(await raw.status(), '13 the request ended within a message');
});

test('a request that arrives byte by byte is accepted', async (t) => {
  const ads = await startAds(t, { snapshot: small });
  const raw = await openRaw(t, ads);
  for (const byte of Buffer.concat([request(), request({ versionInfo: 'again' })]))
    raw.stream.write(Buffer.from([byte]));
  await eventually('the worker is known', () => ads.server.workers.list().length === 1);
  t.is(ads.server.workers.list()[0]?.sent?.version, small.version);
});

test('unknown methods and requests that are not gRPC get an answer', async (t) => {
  const ads = await startAds(t, { snapshot: small });
  const raw = await openRaw(t, ads, { ':path': '/some.Service/Method' });
  t.is(await raw.status(), '12 unknown method /some.Service/Method');
  const plain = openOn(raw.session, { 'content-type': 'text/plain' });
  t.is(await plain.status(), '13 this port speaks only gRPC');
});

test('too many requests end the stream; answers to responses do not count', async (t) => {
  const { metrics, reasons } = recordDrops();
  const limits = { requestBurst: 5, requestsPerSecond: 0.001 };
  const ads = await startAds(t, { snapshot: small, limits, metrics });
  const worker = callDiscovery(t, ads.port, sotw, { node });
  for (let turn = 0; turn < 20; turn++) {
    const { versionInfo = '', nonce = '' } = await worker.next();
    worker.send({ versionInfo, responseNonce: nonce });
    await eventually(
      'the ACK is recorded',
      () => ads.server.workers.list()[0]?.acked?.version === versionInfo,
    );
    ads.set(snapshotOf({ shop: String(turn) }));
  }
  t.deepEqual(reasons, []);
  const { nonce = '' } = await worker.next();
  for (let turn = 0; turn < 6; turn++) worker.send({ responseNonce: nonce });
  t.like(await worker.status(), { code: 8, details: 'too many requests on this stream' });
  t.deepEqual(reasons, ['too_many_requests']);
});

test('answers that change the names count, as each causes a response to answer', async (t) => {
  const limits = { requestBurst: 5, requestsPerSecond: 0.001 };
  const ads = await startAds(t, { snapshot: snapshotOf({ a: '1', b: '1' }), limits });
  const names = (turn: number) => [turn % 2 === 0 ? 'a' : 'b'];
  const chooser = callDiscovery(t, ads.port, sotw);
  const chooses = async () => {
    chooser.send({ node, resourceNames: names(0) });
    for (let turn = 1; turn < 20; turn++) {
      const { nonce = '' } = await chooser.next();
      chooser.send({ resourceNames: names(turn), responseNonce: nonce, errorDetail: {} });
    }
  };
  await t.throwsAsync(chooses(), { message: 'the stream ended: too many requests on this stream' });
  const asker = callDiscovery(t, ads.port, delta);
  const asksAgain = async () => {
    asker.send({ node, resourceNamesSubscribe: names(0) });
    for (let turn = 1; turn < 20; turn++) {
      const { nonce = '' } = await asker.next();
      asker.send({ resourceNamesSubscribe: names(turn), responseNonce: nonce });
    }
  };
  await t.throwsAsync(asksAgain(), {
    message: 'the stream ended: too many requests on this stream',
  });
});

test('a worker that refuses one selection of names after another causes two log lines', async (t) => {
  // All within the interval of one line.
  const all = snapshotOf({ a: '1', b: '1', c: '1', d: '1', e: '1', f: '1' });
  const ads = await startAds(t, { snapshot: all, clock: createManualClock() });
  const worker = callDiscovery(t, ads.port, sotw);
  const chosen: string[] = [];
  for (const name of all.resources.keys()) {
    chosen.push(name);
    const refusal = { responseNonce: String(chosen.length - 1), errorDetail: { message: 'no' } };
    worker.send({ node, resourceNames: chosen, ...(chosen.length > 1 && refusal) });
    t.is((await worker.next()).nonce, String(chosen.length));
  }
  worker.close();
  await ads.stop();
  const lines = ads.log.lines.filter((line) => line.includes('refused version'));
  t.is(lines.length, 2);
  t.true(lines[1]?.endsWith(': no (and 3 more like it)'), lines[1]);
});

test('streams beyond the limit are refused, and admitted when others have left', async (t) => {
  const { metrics, reasons } = recordDrops();
  const ads = await startAds(t, { snapshot: small, limits: { maxStreams: 2 }, metrics });
  const workers = [callDiscovery(t, ads.port, sotw), callDiscovery(t, ads.port, sotw)];
  for (const worker of workers) {
    worker.send({ node });
    await worker.next();
  }
  const third = callDiscovery(t, ads.port, sotw, { node });
  t.like(await third.status(), { code: 8, details: 'there are 2 streams already' });
  t.deepEqual(reasons, ['too_many_streams']);
  workers[0]?.close();
  await eventually('one has left', () => ads.server.workers.list().length === 1);
  const fourth = callDiscovery(t, ads.port, sotw, { node });
  t.is((await fourth.next()).versionInfo, small.version);
});

test('while all connections are in use, those beyond the limit are closed', async (t) => {
  const ads = await startAds(t, { snapshot: small, limits: { maxConnections: 1 } });
  const raw = await openRaw(t, ads);
  raw.stream.write(request());
  await eventually('the first is served', () => ads.server.workers.list().length === 1);
  const second = connect(`http://127.0.0.1:${ads.port}`);
  second.on('error', () => {});
  await once(second, 'close');
  t.is(ads.server.workers.list().length, 1);
  const line = 'warning xDS: there are already 1 connections: the newest one was closed';
  t.true(ads.log.lines.includes(line));
});

test('a stream without a request is ended', async (t) => {
  const ads = await startAds(t, { snapshot: small, limits: { requestMs: 50 } });
  const raw = await openRaw(t, ads);
  t.is(await raw.status(), '3 no request arrived on this stream');
});

test('a stream that is not read is cut off; others on its connection and elsewhere continue', async (t) => {
  const { metrics, reasons } = recordDrops();
  const ads = await startAds(t, { snapshot: large, limits: { drainTimeoutMs: 3_000 }, metrics });
  ads.choose(({ id }) => (id === 'slow' ? large : small));
  const raw = await openRaw(t, ads);
  raw.stream.pause();
  raw.stream.write(request({ node: { id: 'slow' } }));
  const neighbour = openOn(raw.session);
  neighbour.stream.write(request());
  const elsewhere = callDiscovery(t, ads.port, sotw, { node });
  await elsewhere.next();
  await eventually('the slow one is gone', () => ads.server.workers.list().length === 2);
  t.deepEqual(reasons, ['slow_reader']);
  const line = ads.log.lines.find((text) => text.includes('was cut off')) ?? '';
  t.regex(
    line,
    /^warning xDS: worker 'slow' at \S+ was cut off: it did not read a response of 8\d{6} bytes in 3 s$/,
  );
  await eventually('its client sees that', () => raw.stream.closed);
  t.is(raw.stream.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  const next = snapshotOf({ shop: 'two' });
  ads.set(next);
  t.is((await elsewhere.next()).versionInfo, next.version);
  await eventually('the neighbour too', () =>
    ads.server.workers.list().every(({ sent }) => sent?.version === next.version),
  );
});

test('a connection that is not read for 30 s is closed with its only stream', async (t) => {
  const clock = createManualClock();
  const ads = await startAds(t, { snapshot: large, clock });
  const proxy = await startTcpProxy(t, ads.port);
  const raw = await openRaw(t, { port: proxy.port });
  raw.stream.write(request());
  await eventually('the worker is known', () => ads.server.workers.list().length === 1);
  proxy.inject({ kind: 'stall' });
  clock.advance(29_999);
  t.is(ads.server.workers.list().length, 1);
  clock.advance(1);
  t.is(ads.server.workers.list().length, 0);
  // A stop has nothing left to wait for: the clock is stopped.
  await ads.server.stop(60_000);
  raw.session.destroy();
  await proxy.close();
});

test('a silent peer is pinged after 30 s, and closed 20 s later', async (t) => {
  const clock = createManualClock();
  const ads = await startAds(t, { snapshot: small, clock });
  const proxy = await startTcpProxy(t, ads.port);
  const raw = await openRaw(t, { port: proxy.port });
  raw.stream.write(request());
  await once(raw.stream, 'data');
  const count = () => ads.server.workers.list().length;
  proxy.inject({ kind: 'stall' });
  clock.advance(30_000);
  clock.advance(19_999);
  t.is(count(), 1);
  clock.advance(1);
  await eventually('it is closed', () => count() === 0);
  raw.session.destroy();
  await proxy.close();
});

test('a peer that answers pings stays', async (t) => {
  const clock = createManualClock();
  const ads = await startAds(t, { snapshot: small, clock });
  const { session, stream } = await openRaw(t, ads);
  t.teardown(() => session.destroy());
  stream.write(request());
  await eventually('the worker is known', () => ads.server.workers.list().length === 1);
  for (let period = 0; period < 5; period++) {
    const pinged = once(session, 'ping');
    clock.advance(defaultLimits.keepaliveMs);
    await pinged;
    // Once the server has answered a later ping, it has received the answer to its own.
    await new Promise((resolve) => session.ping(resolve));
  }
  clock.advance(defaultLimits.keepaliveTimeoutMs);
  t.is(ads.server.workers.list().length, 1);
  t.false(session.closed);
});

test('a stop ends streams with a reason, and does not wait for those that do not read', async (t) => {
  const ads = await startAds(t, { snapshot: small });
  ads.choose(({ id }) => (id === 'stuck' ? large : small));
  const worker = callDiscovery(t, ads.port, sotw, { node });
  await worker.next();
  const stuck = await openRaw(t, ads);
  stuck.stream.pause();
  stuck.stream.write(request({ node: { id: 'stuck' } }));
  await eventually('both are known', () => ads.server.workers.list().length === 2);
  const stopped = ads.server.stop(100);
  t.like(await worker.status(), { code: 14, details: 'the control plane is stopping' });
  await stopped;
  t.deepEqual(ads.server.workers.list(), []);
});

test('a port in use ends the start', async (t) => {
  const ads = await startAds(t, { snapshot: small });
  await t.throwsAsync(startAds(t, { port: ads.port }), {
    name: 'AppError',
    message: new RegExp(`^the xDS server cannot listen on 127\\.0\\.0\\.1:${ads.port}: `),
  });
});
