// Over a real socket, with the test as the server.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import type { Duration } from '../../metrics.ts';
import { type Connection, createConnection } from './connection.ts';
import type { RawReply } from './reply-reader.ts';

async function setUp(t: ExecutionContext, callDuration?: Duration) {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as { port: number };
  const socket = connect(port, '127.0.0.1');
  const [[server]] = (await Promise.all([
    once(listener, 'connection'),
    once(socket, 'connect'),
  ])) as [[Socket], unknown];
  server.on('error', () => {});
  t.teardown(() => {
    socket.destroy();
    server.destroy();
    listener.close();
  });
  return {
    connection: createConnection(socket, {
      clock: systemClock,
      timeoutMs: 1_000,
      callDuration,
    }),
    server,
  };
}

const send = (connection: Connection, ...commands: string[]) =>
  new Promise<RawReply[]>((resolve) => connection.send(commands, resolve));

test('replies go to what was sent, in order', async (t) => {
  const { connection, server } = await setUp(t);
  const answers = Promise.all([send(connection, 'a', 'b'), send(connection, 'c')]);
  let received = '';
  server.on('data', (chunk) => {
    received += chunk;
    if (received === 'abc') server.write(':1\r\n-ERR no\r\n+OK\r\n');
  });
  const [[one, refusal], other] = (await answers) as [RawReply[], RawReply[]];
  t.is(one, 1);
  t.is((refusal as Error).message, 'ERR no');
  t.deepEqual(other, ['OK']);
});

test('the end of the connection fails what is unanswered, once, and keeps what is answered', async (t) => {
  const { connection, server } = await setUp(t);
  const answers = Promise.all([send(connection, 'a', 'b'), send(connection, 'c')]);
  server.end(':1\r\n');
  const [[one, lost], [alsoLost]] = (await answers) as [RawReply[], RawReply[]];
  t.is(one, 1);
  t.true(lost instanceof Error && alsoLost instanceof Error);
  t.is(await connection.ended, 'the connection was closed');
  t.true((await send(connection, 'd'))[0] instanceof Error);
});

for (const [title, bytes, reason] of [
  ['what is no reply', 'HTTP/1.1 200 OK\r\n', 'the server sent a reply that begins with "H"'],
  ['a reply to nothing', ':1\r\n:2\r\n', 'the server said something without being asked'],
] as const) {
  test(`${title} ends the connection`, async (t) => {
    const { connection, server } = await setUp(t);
    const answer = send(connection, 'a');
    server.write(bytes);
    t.is(await connection.ended, reason);
    t.is((await answer).length, 1);
  });
}

test('ending it in the middle of replies calls nobody twice', async (t) => {
  const { connection, server } = await setUp(t);
  const outcomes: RawReply[][] = [];
  const second = new Promise<void>((resolve) => {
    connection.send(['a'], (replies) => {
      outcomes.push(replies);
      connection.destroy();
    });
    connection.send(['b'], (replies) => {
      outcomes.push(replies);
      resolve();
    });
  });
  server.write(':1\r\n:2\r\n');
  await second;
  t.is(outcomes.length, 2);
  t.deepEqual(outcomes[0], [1]);
  t.true(outcomes[1]?.[0] instanceof Error);
});

test('each write is measured once, until its last reply or until nobody waits for it any more', async (t) => {
  const observed: number[] = [];
  const { connection, server } = await setUp(t, { observe: (seconds) => observed.push(seconds) });
  const answers = [send(connection, 'a', 'b'), send(connection, 'c')];
  server.write(':1\r\n:2\r\n');
  await answers[0];
  t.is(observed.length, 1);
  connection.destroy();
  await answers[1];
  t.is(observed.length, 2, 'a call without an answer');
  await send(connection, 'd');
  t.is(observed.length, 2, 'what could not be written is no call');
  t.true(observed.every((seconds) => seconds >= 0 && seconds < 60));
});
