// Over a real socket, with the test as the server; the other tests are in the contract of counter stores.
import { createServer } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { listenFor } from '../../../test/support/listen.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { type Answer, openConnection } from './connection.ts';

/** A connection to a server that answers `version`, and nothing else. */
async function open(t: ExecutionContext) {
  const server = createServer((socket) =>
    socket.on('data', (text) => `${text}` === 'version\r\n' && socket.write('VERSION 1\r\n')),
  );
  const port = await listenFor(t, server);
  const clock = createManualClock();
  const ends: string[] = [];
  const connection = await openConnection({
    address: { host: '127.0.0.1', port },
    ...{ tls: undefined, timeoutMs: 500, callDuration: { observe() {} }, clock },
    onEnd: ({ message }) => ends.push(message),
  });
  const ask = (command = 'version') =>
    new Promise<Answer>((resolve) => connection.send(`${command}\r\n`, resolve));
  return { connection, clock, ends, ask };
}

test('a connection without unanswered commands stays open, and has no timer', async (t) => {
  const { connection, clock, ends, ask } = await open(t);
  t.is(clock.pending, 0);
  t.is(await ask(), 'VERSION 1');
  clock.advance(500);
  t.is(clock.pending, 0);
  t.is(await ask(), 'VERSION 1');
  connection.destroy();
  t.deepEqual(ends, ['closed']);
});

test('each command has its whole time, also if it is sent while an earlier one is waited for', async (t) => {
  const { clock, ends, ask } = await open(t);
  t.is(await ask(), 'VERSION 1');
  clock.advance(400);
  const answer = ask('silence');
  clock.advance(499);
  for (let turn = 0; turn < 3; turn++) await nextTurn();
  t.deepEqual(ends, []);
  clock.advance(1);
  t.regex(String(await answer), /no answer in 500 ms/);
});
