// Over a real socket, with the test as the server; the other tests are in the contract of counter stores.
import { createServer } from 'node:net';
import test from 'ava';
import { listenFor } from '../../../test/support/listen.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { type Answer, openConnection } from './connection.ts';

test('a connection without unanswered commands stays open, and has no timer', async (t) => {
  const server = createServer((socket) => socket.on('data', () => socket.write('VERSION 1\r\n')));
  const port = await listenFor(t, server);
  const clock = createManualClock();
  const connection = await openConnection({
    address: { host: '127.0.0.1', port },
    ...{ tls: undefined, timeoutMs: 500, callDuration: { observe() {} }, clock },
    onEnd: ({ message }) => t.is(message, 'closed'),
  });
  const ask = () => new Promise<Answer>((resolve) => connection.send('version\r\n', resolve));
  t.is(await ask(), 'VERSION 1');
  clock.advance(500);
  t.is(clock.pending, 0);
  t.is(await ask(), 'VERSION 1');
  connection.destroy();
});
