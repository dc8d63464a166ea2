import { createSocket, type Socket } from 'node:dgram';
import diagnostics from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/free-port.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createUdpLines } from './udp-lines.ts';

async function startReceiver(t: ExecutionContext, port = 0) {
  const datagrams: string[] = [];
  /** Of the senders. */
  const ports = new Set<number>();
  const socket = createSocket({ type: 'udp4', recvBufferSize: 1024 * 1024 }, (message, from) => {
    datagrams.push(message.toString());
    ports.add(from.port);
  });
  socket.bind(port, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return { port: socket.address().port, datagrams, ports };
}

function open(t: ExecutionContext, port: number, host = '127.0.0.1') {
  const events: string[] = [];
  const clock = createManualClock();
  const lines = createUdpLines({
    host,
    port,
    family: 4,
    clock,
    onLost: (reason) => events.push(`lost: ${reason}`),
    onBack: () => events.push('back'),
    onDropped: (count) => events.push(`dropped: ${count}`),
  });
  t.teardown(() => lines.close(0));
  return { lines, events, clock };
}

test('several lines are sent in one datagram', async (t) => {
  const { port, datagrams } = await startReceiver(t);
  const { lines } = open(t, port);
  await eventually('a socket', () => lines.ready);
  lines.send('a:1|c\nb:2|c\n');
  await eventually('a datagram', () => datagrams.length > 0);
  t.deepEqual(datagrams, ['a:1|c\nb:2|c\n']);
});

test('datagrams contain complete lines and at most 1432 bytes', async (t) => {
  const { port, datagrams } = await startReceiver(t);
  const { lines } = open(t, port);
  await eventually('a socket', () => lines.ready);
  const text = Array.from({ length: 300 }, (_, i) => `name.with.ümlaut.${i}:1|c\n`).join('');
  lines.send(text);
  await eventually('all lines', () => datagrams.join('') === text);
  t.true(datagrams.length > 1);
  for (const datagram of datagrams) {
    t.true(datagram.endsWith('\n'));
    t.true(Buffer.byteLength(datagram) <= 1432);
  }
});

test('a line longer than a datagram should be is sent alone', async (t) => {
  const { port, datagrams } = await startReceiver(t);
  const { lines } = open(t, port);
  await eventually('a socket', () => lines.ready);
  const long = `${'x'.repeat(2000)}:1|c\n`;
  lines.send(`a:1|c\n${long}b:1|c\n${long}`);
  await eventually('four datagrams', () => datagrams.length === 4);
  t.deepEqual(datagrams, ['a:1|c\n', long, 'b:1|c\n', long]);
});

test('a missing receiver is detected, and lines are sent again when it listens', async (t) => {
  const port = await freePort();
  const { lines, events, clock } = open(t, port);
  await eventually('a socket', () => lines.ready);
  await eventually('the refusal', () => {
    lines.send('a:1|c\n');
    return events.length > 0;
  });
  t.regex(events[0] ?? '', /^lost: .*ECONNREFUSED/);
  const { datagrams } = await startReceiver(t, port);
  clock.advance(3000);
  await eventually('another socket', () => lines.ready);
  lines.send('b:1|c\n');
  await eventually('a datagram', () => datagrams.length > 0);
  await eventually('the wait for errors', () => clock.pending === 2);
  t.deepEqual(datagrams, ['b:1|c\n']);
  t.false(events.includes('back'));
  clock.advance(5000);
  t.is(events.at(-1), 'back');
});

test('a failed connection is retried, and never counts as reached', async (t) => {
  // Sockets are not allowed to broadcast: their attempt to connect fails, as it does without a route.
  const { lines, events, clock } = open(t, 8125, '255.255.255.255');
  await eventually('the failure', () => events.length === 1);
  t.regex(events[0] ?? '', /^lost: connect EACCES 255\.255\.255\.255/);
  t.false(lines.ready);
  lines.send('a:1|c\nb:1|c\n');
  t.is(events[1], 'dropped: 2');
  clock.advance(3000);
  await eventually('another failure', () => events.length === 3);
  clock.advance(2999);
  t.deepEqual(events, [events[0], 'dropped: 2', events[0]]);
});

test('a receiver counts as reached only when something was sent and no error was received', async (t) => {
  const { port } = await startReceiver(t);
  const { lines, events, clock } = open(t, port);
  await eventually('a socket', () => lines.ready);
  clock.advance(59_000);
  t.deepEqual(events, []);
  lines.send('a:1|c\n');
  await eventually('the wait for errors', () => clock.pending === 2);
  clock.advance(5000);
  t.deepEqual(events, ['back']);
});

test.serial('closing while the socket opens leaves no socket behind', async (t) => {
  const clock = createManualClock();
  const noEvent = () => t.fail('an event came');
  const deps = { host: '127.0.0.1', port: 9, family: 4, clock } as const;
  const closed: unknown[] = [];
  diagnostics.subscribe('udp.socket', note);
  t.teardown(() => diagnostics.unsubscribe('udp.socket', note));
  function note(message: unknown): void {
    const { socket } = message as { readonly socket: Socket };
    socket.once('close', () => closed.push(socket));
    // The attempt to connect begins in this turn and ends in a later one.
    queueMicrotask(() => void lines.close(0));
  }
  const lines = createUdpLines({ ...deps, onLost: noEvent, onBack: noEvent, onDropped: noEvent });
  await eventually('the end of the socket', () => closed.length === 1);
  t.false(lines.ready);
});

test('a name that does not resolve is tried again', async (t) => {
  // The machine's own resolver may be slow.
  t.timeout(180_000);
  const { lines, events, clock } = open(t, 8125, 'no-such-host.invalid');
  await eventually('a failure', () => events.length === 1, 60_000);
  t.regex(events[0] ?? '', /^lost: .*no-such-host\.invalid/);
  t.false(lines.ready);
  clock.advance(3000);
  await eventually('another failure', () => events.length === 2, 60_000);
});

test('a socket is replaced each minute: its receiver may be gone without an error', async (t) => {
  const { port, ports } = await startReceiver(t);
  const { lines, clock } = open(t, port);
  await eventually('two sockets', async () => {
    if (lines.ready) lines.send('a:1|c\n');
    if (ports.size === 1) clock.advance(60_000);
    return ports.size > 1;
  });
  t.is(ports.size, 2);
});

test('closing is final and can be repeated', async (t) => {
  const { port, datagrams } = await startReceiver(t);
  const { lines, clock } = open(t, port);
  await eventually('a socket', () => lines.ready);
  lines.send('a:1|c\n');
  await lines.close(1000);
  await lines.close(1000);
  await eventually('the datagram', () => datagrams.length === 1);
  t.is(clock.pending, 0);
  t.false(lines.ready);
});
