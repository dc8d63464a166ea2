import { createServer } from 'node:http2';
import { setImmediate } from 'node:timers/promises';
import test from 'ava';
import { loadFleetLink } from '../../shared/wire/fleet.ts';
import type { FromWorkerMessage, ReportMessage } from '../../shared/wire/fleet-messages.ts';
import { eventually } from '../../test/support/eventually.ts';
import { listenFor } from '../../test/support/listen.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { type ManagementStreamDeps, openManagementStream } from '../management-stream.ts';
import { Link, type LinkDeps } from './link.ts';

type StreamDeps = ManagementStreamDeps<unknown, unknown>;

const emptyReport: ReportMessage = {
  version: '1',
  seconds: 5,
  rules: [],
  otherRuleCount: 0,
  unmatched: [],
};

function setUp(given: Partial<LinkDeps> = {}) {
  const clock = createManualClock();
  const log = createRecordedLog();
  const streams: StreamDeps[] = [];
  const sent: { readonly message: FromWorkerMessage; readonly onSent: () => void }[] = [];
  let reports = 0;
  const link = new Link({
    server: { url: 'control-plane:1', headers: {}, tls: undefined, maxMessageBytes: 0 },
    method: loadFleetLink(),
    openStream(deps) {
      streams.push(deps as StreamDeps);
      return {
        send: (message, onSent = () => {}) =>
          void sent.push({ message: message as object, onSent }),
        close() {},
      };
    },
    hello: {
      nodeId: 'n',
      instance: 'i',
      agreement: 'a',
      countsAlone: true,
      allowsReset: false,
      values: 2,
    },
    reports: {
      drain() {
        reports++;
        return emptyReport;
      },
    },
    log,
    clock,
    random: () => 0.5,
    counters: () => undefined,
    processes: 1,
    ...given,
  });
  link.start();
  return { clock, log, streams, sent, link, reportsDrained: () => reports };
}

test('a server that reads nothing is sent one report, and counts as lost after 15 seconds', (t) => {
  const lost: string[] = [];
  const { clock, streams, sent, reportsDrained, link } = setUp({
    onLost: ({ url }, reason) => void lost.push(`${url}: ${reason}`),
  });
  streams[0]?.onOpen();
  clock.advance(14_999);
  t.is(sent.length, 2);
  t.is(reportsDrained(), 1);
  t.deepEqual(lost, []);
  clock.advance(1);
  t.deepEqual(lost, ['control-plane:1: the server has answered nothing for 15s']);
  t.regex(link.describe(), /not connected: the server has answered nothing for 15s/);
  clock.advance(2_000);
  t.is(streams.length, 2);
});

test('a server that answered reports counts as lost 15 seconds after the first unanswered one', (t) => {
  const lost: string[] = [];
  const { clock, streams, sent } = setUp({ onLost: ({ url }) => void lost.push(url) });
  streams[0]?.onOpen();
  for (let index = 0; index < 100; index++) {
    sent.at(-1)?.onSent();
    streams[0]?.onResponse({});
    clock.advance(5_000);
  }
  // From here on the network accepts reports, and nothing is received.
  sent.at(-1)?.onSent();
  for (let index = 0; index < 2; index++) {
    clock.advance(5_000);
    sent.at(-1)?.onSent();
  }
  t.deepEqual(lost, []);
  clock.advance(5_000);
  t.deepEqual(lost, ['control-plane:1']);
});

test('a server that never answers reports, such as an earlier version, does not count as lost', (t) => {
  const lost: string[] = [];
  const { clock, streams, sent } = setUp({ onLost: ({ url }) => void lost.push(url) });
  streams[0]?.onOpen();
  for (let index = 0; index < 100; index++) {
    sent.at(-1)?.onSent();
    clock.advance(5_000);
  }
  t.deepEqual(lost, []);
  t.is(streams.length, 1);
});

test('a server that accepts the stream and reads nothing costs the memory of one report', async (t) => {
  const server = createServer();
  server.on('session', (session) => session.on('error', () => {}));
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
  });
  const port = await listenFor(t, server);
  const url = `127.0.0.1:${port}`;
  let drained = 0;
  const { clock, link } = setUp({
    server: { url, headers: {}, tls: undefined, maxMessageBytes: 0 },
    openStream: openManagementStream,
    reports: {
      drain() {
        drained++;
        // More than the server allows to be sent before it reads.
        return { ...emptyReport, version: 'v'.repeat(100_000) };
      },
    },
  });
  await eventually('the first report', () => drained > 0);
  for (let index = 0; index < 100; index++) {
    clock.advance(6_000);
    await setImmediate();
  }
  await link.stop();
  // Each report is sent on a new connection.
  t.true(drained < 40, `${drained} reports`);
  t.is(clock.pending, 0);
});

test('a report is sent about every five seconds, and one at the end', async (t) => {
  const { clock, streams, sent, link } = setUp();
  streams[0]?.onOpen();
  for (let index = 0; index < 12; index++) {
    sent.at(-1)?.onSent();
    clock.advance(5_000);
  }
  t.is(sent.length, 14);
  sent.at(-1)?.onSent();
  const stopped = link.stop();
  t.is(sent.length, 15);
  sent.at(-1)?.onSent();
  await stopped;
  t.is(clock.pending, 0);
});

test('the end does not wait for a server that reads nothing', async (t) => {
  const { clock, streams, sent, link } = setUp();
  streams[0]?.onOpen();
  sent[1]?.onSent();
  const stopped = link.stop();
  clock.advance(500);
  await stopped;
  t.is(clock.pending, 0);
});

// Proof of migrating.md: A second stream, `ratelane.fleet.v1.Fleet/Link`, is opened to the same server; one
// that does not know it is asked again every ten minutes (`CONFIG_FLEET_LINK=false` asks none)
test('a server without the service is named once at info, and asked again ten minutes later', (t) => {
  const { clock, log, streams } = setUp();
  streams[0]?.onEnd('UNIMPLEMENTED: unknown method', true);
  clock.advance(599_000);
  t.is(streams.length, 1);
  clock.advance(1_000);
  t.is(streams.length, 2);
  streams[1]?.onEnd('UNIMPLEMENTED: unknown method', true);
  t.deepEqual(log.lines, [
    'info The management server control-plane:1 rejects reports from this worker, which continues without them',
  ]);
});

test('the link switches to the server that it is set to follow, at once and without waits', (t) => {
  const { clock, streams, sent, link } = setUp();
  const other = { url: 'other:1', headers: {}, tls: undefined, maxMessageBytes: 0 };
  streams[0]?.onEnd('UNAVAILABLE: no route', false);
  link.follow(other);
  t.deepEqual(
    streams.map(({ server }) => server.url),
    ['control-plane:1', 'other:1'],
  );
  clock.advance(60_000);
  t.is(streams.length, 2, 'the wait for the first server is over');
  streams[1]?.onOpen();
  sent.at(-1)?.onSent();
  t.regex(link.describe(), /connected to other:1,/);
  link.follow({ ...other });
  t.is(streams.length, 2);
});

test('a lost link reconnects with growing waits, and loss and recovery are each logged once', (t) => {
  const { clock, log, streams, sent } = setUp();
  for (let index = 0; index < 5; index++) {
    streams[index]?.onEnd('UNAVAILABLE: no route', false);
    clock.advance(45_000);
  }
  t.is(streams.length, 6);
  streams[5]?.onOpen();
  sent.at(-1)?.onSent();
  t.deepEqual(log.lines, [
    'info The link to the control plane control-plane:1 is not open: UNAVAILABLE: no route',
    'info The link to the control plane control-plane:1 is open',
  ]);
});
