// Tests how a worker leaves, over real sockets: with a goodbye, or because its connection broke.
import { once } from 'node:events';
import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2';
import { connect, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import {
  callDiscovery,
  discoveryProtos,
  noMetrics,
  snapshotOf,
  startAds,
} from '../../../test/support/ads-fixture.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { openOn, request } from '../../../test/support/raw-discovery.ts';
import { startTcpProxy } from '../../../test/support/tcp-proxy.ts';
import { defaultLimits } from './limits.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;
const metadataOf = (instance: string) => ({
  fields: { 'ratelane.instance': { stringValue: instance } },
});
const requestOf = (id: string, instance?: string) =>
  request({ node: { id, ...(instance !== undefined && { metadata: metadataOf(instance) }) } });

interface OpenWorker {
  readonly session: ClientHttp2Session;
  readonly socket: Socket;
  readonly stream: ReturnType<typeof openOn>['stream'];
}

async function setUp(t: ExecutionContext, clock: Clock = systemClock) {
  const counted: string[] = [];
  const metrics = {
    ...noMetrics,
    responseSent: () => void counted.push('sent'),
    dropped: (reason: string) => void counted.push(reason),
  };
  const ads = await startAds(t, { snapshot: snapshotOf({ a: '1' }), clock, metrics });
  const { workers } = ads.server;
  async function open(id: string, instance?: string, port = ads.port): Promise<OpenWorker> {
    const socket = connect(port, '127.0.0.1');
    const session = connectHttp2('http://localhost', { createConnection: () => socket });
    session.on('error', () => {});
    t.teardown(() => session.destroy());
    await once(session, 'remoteSettings');
    const { stream } = openOn(session);
    const before = workers.list().length;
    stream.write(requestOf(id, instance));
    await eventually('it is connected', () => workers.list().length > before);
    return { session, socket, stream };
  }
  const gone = () => workers.vanished().map(({ node }) => node.id);
  return { ads, workers, open, gone, counted };
}

const goodbyes: readonly (readonly [string, (worker: OpenWorker) => void])[] = [
  ['the end of its stream', ({ stream }) => stream.end()],
  ['a reset of its stream', ({ stream }) => stream.close(constants.NGHTTP2_CANCEL)],
  [
    'a reset of its stream, and the end of its connection at once',
    ({ stream, socket }) => {
      stream.close(constants.NGHTTP2_CANCEL);
      // After the session's pending bytes.
      setImmediate(() => socket.end());
    },
  ],
  [
    'GOAWAY, and the end of its connection',
    ({ session, socket }) => {
      session.goaway();
      setImmediate(() => socket.destroy());
    },
  ],
];
for (const [how, leave] of goodbyes) {
  test(`a worker that leaves with ${how} has not vanished`, async (t) => {
    const { workers, open, gone } = await setUp(t);
    leave(await open('w-1'));
    await eventually('it has left', () => workers.list().length === 0);
    t.deepEqual(gone(), []);
  });
}

test('a worker that cancels its call and closes its channel has not vanished', async (t) => {
  const { ads, workers, gone } = await setUp(t);
  const stream = callDiscovery(t, ads.port, sotw, { node: { id: 'w-1' } });
  await stream.next();
  stream.close();
  await eventually('it has left', () => workers.list().length === 0);
  t.deepEqual(gone(), []);
});

test('a worker whose stream was ended here has not vanished, whatever happens to its connection afterwards', async (t) => {
  const { workers, open, gone } = await setUp(t);
  const { stream, socket } = await open('w-1');
  stream.write(Buffer.from([0, 0, 0, 0, 1, 0xff]));
  await eventually('it is ended', () => workers.list().length === 0);
  socket.destroy();
  await once(socket, 'close');
  await open('w-2');
  t.deepEqual(gone(), []);
});

test('a worker whose connection ends, is reset or stops answering has vanished, and its state is recorded', async (t) => {
  const clock = createManualClock();
  const { ads, workers, open, gone } = await setUp(t, clock);
  const proxy = await startTcpProxy(t, ads.port);
  const breaks: readonly (readonly [number, (worker: OpenWorker) => void])[] = [
    [ads.port, ({ socket }) => void socket.destroy()],
    [ads.port, ({ socket }) => void socket.resetAndDestroy()],
    [
      proxy.port,
      () => {
        proxy.inject({ kind: 'stall' });
        clock.advance(defaultLimits.keepaliveMs + defaultLimits.keepaliveTimeoutMs);
      },
    ],
  ];
  for (const [port, breakOff] of breaks) {
    const worker = await open('w-1', 'i-1', port);
    const [{ address } = { address: '' }] = workers.list();
    const version = workers.list()[0]?.sent?.version ?? '';
    worker.stream.write(request({ versionInfo: version, responseNonce: '1' }));
    await eventually('it has the version', () => workers.list()[0]?.acked?.version === version);
    breakOff(worker);
    await eventually('it has left', () => workers.list().length === 0);
    t.deepEqual(gone(), ['w-1']);
    t.like(workers.vanished()[0], { instance: 'i-1', address, acked: { version } });
    const other = await open('w-1', 'i-2');
    t.deepEqual(gone(), ['w-1'], 'another start of it is not the same one');
    const again = await open('w-1', 'i-1');
    t.deepEqual(gone(), []);
    for (const { stream } of [other, again]) stream.close(constants.NGHTTP2_CANCEL);
    await eventually('both have left', () => workers.list().length === 0);
  }
});

// Proof of SECURITY.md: cannot speak for another worker, or take its stream
test('a second stream of a connected instance is refused by name, and the first one stays', async (t) => {
  const { ads, workers, open, counted } = await setUp(t);
  await open('w-1', 'i-1');
  const [{ address } = { address: '' }] = workers.list();
  const second = callDiscovery(t, ads.port, sotw, {
    node: { id: 'w-2', metadata: metadataOf('i-1') },
  });
  const { code, details } = await second.status();
  const text = `instance 'i-1' of worker 'w-1' is connected already, from ${address}`;
  t.deepEqual([code, details], [6, text]);
  t.deepEqual(counted, ['sent', 'already_connected']);
  t.deepEqual(
    workers.list().map((worker) => [worker.node.id, worker.instance, worker.address]),
    [['w-1', 'i-1', address]],
  );
  t.regex(
    ads.log.lines.join('\n'),
    /warning xDS: the stream of worker 'w-2' at .* was ended: instance 'i-1' of worker 'w-1' is/,
  );
});

test('a worker that resets its stream and opens the next one at once is not refused', async (t) => {
  const { workers, open } = await setUp(t);
  const { session, stream } = await open('w-1', 'i-1');
  const [before] = workers.list();
  stream.close(constants.NGHTTP2_CANCEL);
  const next = openOn(session);
  next.stream.write(requestOf('w-1', 'i-1'));
  await eventually('it is back', () => workers.list().some((worker) => worker !== before));
  t.is(workers.list().length, 1);
  t.not(workers.list()[0]?.sent, undefined);
});

test('an instance that is too long is refused, and the message names the key', async (t) => {
  const { ads } = await setUp(t);
  const stream = callDiscovery(t, ads.port, sotw, {
    node: { id: 'w-1', metadata: metadataOf('i'.repeat(1_025)) },
  });
  const { code, details } = await stream.status();
  t.deepEqual([code, details], [3, "ratelane.instance in the node's metadata is too long"]);
});
