import { once } from 'node:events';
import type { Socket } from 'node:net';
import { createServer } from 'node:net';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import { eventually } from '../../test/support/eventually.ts';
import { freePort } from '../../test/support/free-port.ts';
import type { ManualClock } from '../../test/support/manual-clock.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { TcpLines } from './tcp-lines.ts';

interface Receiver {
  readonly port: number;
  readonly sockets: Socket[];
  text(): string;
}

/** With `isReading` false, connections are accepted but never read. */
async function startReceiver(t: ExecutionContext, port = 0, isReading = true): Promise<Receiver> {
  const sockets: Socket[] = [];
  let text = '';
  const server = createServer({ pauseOnConnect: !isReading }, (socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    if (!isReading) return;
    socket.on('data', (chunk) => {
      text += chunk;
    });
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { port: address.port, sockets, text: () => text };
}

function open(t: ExecutionContext, port: number, clock: ManualClock = createManualClock()) {
  const events: string[] = [];
  let droppedCount = 0;
  const lines = new TcpLines({
    host: '127.0.0.1',
    port,
    family: 0,
    clock,
    onLost: (reason) => events.push(`lost: ${reason}`),
    onBack: () => events.push('back'),
    onDropped: (count) => {
      droppedCount += count;
    },
  });
  t.teardown(async () => {
    const closing = lines.close(1);
    clock.advance(1);
    await closing;
  });
  return { lines, events, clock, dropped: () => droppedCount };
}

test('lines arrive once the receiver listens', async (t) => {
  const receiver = await startReceiver(t);
  const { lines, events, clock } = open(t, receiver.port);
  t.false(lines.ready);
  await eventually('a connection', () => lines.ready);
  lines.send('a:1|c\n');
  lines.send('b:2|c\n');
  await eventually('both lines', () => receiver.text() === 'a:1|c\nb:2|c\n');
  clock.advance(4999);
  t.deepEqual(events, []);
  clock.advance(1);
  t.deepEqual(events, ['back']);
});

test('a receiver that does not listen yet is tried again every three seconds', async (t) => {
  const port = await freePort();
  const { lines, events, clock } = open(t, port);
  await eventually('a refusal', () => events.length === 1);
  t.regex(events[0] ?? '', /^lost: .*ECONNREFUSED/);
  t.false(lines.ready);
  lines.send('lost:1|c\n');
  const receiver = await startReceiver(t, port);
  clock.advance(2999);
  t.is(receiver.sockets.length, 0);
  clock.advance(1);
  await eventually('a connection', () => lines.ready);
  lines.send('a:1|c\n');
  await eventually('the line', () => receiver.text() === 'a:1|c\n');
});

test('a lost connection is opened again, and one that is closed at once never counts as reached', async (t) => {
  const receiver = await startReceiver(t);
  const { lines, events, clock } = open(t, receiver.port);
  await eventually('a connection', () => lines.ready && receiver.sockets.length === 1);
  receiver.sockets[0]?.destroy();
  await eventually('the loss', () => !lines.ready);
  t.deepEqual(events, ['lost: the receiver closed the connection']);
  clock.advance(3000);
  await eventually('another connection', () => lines.ready);
  lines.send('a:1|c\n');
  await eventually('the line', () => receiver.text() === 'a:1|c\n');
});

test('a receiver that accepts but never reads costs bounded memory and is disconnected, and unread lines are counted', async (t) => {
  const receiver = await startReceiver(t, 0, false);
  const { lines, events, clock, dropped } = open(t, receiver.port);
  await eventually('a connection', () => lines.ready);
  const chunk = 'some.counter:1|c\n'.repeat(4096);
  let sent = 0;
  await eventually('no more room', () => {
    for (let i = 0; i < 100 && lines.ready; i++) {
      lines.send(chunk);
      sent += chunk.length;
    }
    return !lines.ready;
  });
  t.true(sent < 64 * 1024 * 1024, `${sent} bytes`);
  clock.advance(10_000);
  clock.advance(10_000);
  await eventually('the loss', () => events.length === 2);
  t.deepEqual(events, ['back', 'lost: the receiver accepted nothing for 10000ms']);
  const before = dropped();
  t.true(before >= 4096 && before <= sent / 'some.counter:1|c\n'.length, `${before} lines`);
  lines.send('late:1|c\n');
  t.is(dropped(), before + 1);
});

test('a slow receiver that reads something stays connected', async (t) => {
  const receiver = await startReceiver(t, 0, false);
  const { lines, events, clock } = open(t, receiver.port);
  await eventually('a connection', () => lines.ready && receiver.sockets.length === 1);
  const chunk = 'some.counter:1|c\n'.repeat(4096);
  await eventually('no more room', () => {
    for (let i = 0; i < 100 && lines.ready; i++) lines.send(chunk);
    return !lines.ready;
  });
  receiver.sockets[0]?.resume();
  await eventually('room again', () => lines.ready);
  clock.advance(10_000);
  clock.advance(10_000);
  lines.send('still:1|c\n');
  t.true(lines.ready);
  t.deepEqual(events, ['back']);
});

test('lines sent before the close arrive, and the close ends in time', async (t) => {
  const receiver = await startReceiver(t);
  const { lines } = open(t, receiver.port);
  await eventually('a connection', () => lines.ready);
  const text = 'a:1|c\n'.repeat(10_000);
  lines.send(text);
  await lines.close(10_000);
  await lines.close(10_000);
  await eventually('all lines', () => receiver.text() === text);
  t.false(lines.ready);
});

test('closing does not wait for a receiver that does not read', async (t) => {
  const receiver = await startReceiver(t, 0, false);
  const { lines, clock } = open(t, receiver.port);
  await eventually('a connection', () => lines.ready);
  await eventually('no more room', () => {
    for (let i = 0; i < 100 && lines.ready; i++) lines.send('x'.repeat(100_000));
    return !lines.ready;
  });
  const closing = lines.close(1000);
  clock.advance(1000);
  await t.notThrowsAsync(closing);
});

test('closing without a receiver ends at once', async (t) => {
  const { lines, events, clock } = open(t, await freePort());
  await eventually('a refusal', () => events.length === 1);
  await lines.close(1000);
  t.is(clock.pending, 0);
});
