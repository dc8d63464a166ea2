// Tests that new connections are read a few at a time: which ones, in which order, and which ones make room.
import { once } from 'node:events';
import { connect, createServer, Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../../test/support/eventually.ts';
import { listenFor } from '../../../test/support/listen.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createEntrance } from './entrance.ts';

/** At most two are opened at once, within 10 s. Connections are numbered in the order of arrival. */
async function start(t: ExecutionContext) {
  const clock = createManualClock();
  const came: Socket[] = [];
  const greeted: number[] = [];
  const read: number[] = [];
  const entrance = createEntrance({
    ...{ clock, max: 2, openingMs: 10_000 },
    greet: (socket) => void greeted.push(came.indexOf(socket)),
    read: (socket) => void read.push(came.indexOf(socket)),
  });
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    came.push(socket);
    entrance.come(socket);
  });
  const port = await listenFor(t, server);
  t.teardown(() => entrance.close());
  return {
    ...{ entrance, clock, came, greeted, read },
    /** Opens `count` more connections. */
    async come(count: number) {
      const before = came.length;
      for (let index = 0; index < count; index++) {
        const client = connect(port, '127.0.0.1').on('error', () => {});
        t.teardown(() => client.destroy());
        await eventually('it has come', () => came.length > before + index);
      }
    },
    opened: (index: number) => entrance.opened(came[index] as Socket),
    async end(index: number) {
      const socket = came[index];
      if (socket === undefined) return;
      socket.destroy();
      await once(socket, 'close');
    },
    closed: () => came.flatMap((socket, index) => (socket.destroyed ? [index] : [])),
  };
}

test('clients beyond the limit receive the settings and wait; their bytes are read in order as earlier connections open', async (t) => {
  const { come, opened, clock, greeted, read, closed } = await start(t);
  await come(5);
  t.deepEqual(greeted, [0, 1, 2, 3, 4]);
  t.deepEqual(read, [0, 1]);
  opened(1);
  t.deepEqual(read, [0, 1, 2]);
  opened(1);
  opened(0);
  opened(2);
  t.deepEqual(read, [0, 1, 2, 3, 4]);
  t.deepEqual(closed(), []);
  // A connection that has been opened has no timer left.
  t.is(clock.pending, 2);
});

test('a client that exceeds its time is closed only when another one waits', async (t) => {
  const { come, clock, read, closed } = await start(t);
  await come(2);
  clock.advance(60_000);
  t.deepEqual(closed(), []);
  await come(1);
  t.deepEqual(closed(), [0]);
  t.deepEqual(read, [0, 1, 2]);
  await come(2);
  t.deepEqual(closed(), [0, 1]);
  clock.advance(9_999);
  t.deepEqual(closed(), [0, 1]);
  clock.advance(1);
  t.deepEqual(closed(), [0, 1, 2]);
});

test('a client that has waited long is read for some turns, even if the process stalls meanwhile', async (t) => {
  const { come, clock, read, closed } = await start(t);
  await come(6);
  clock.advance(10_000);
  t.deepEqual(read, [0, 1, 2, 3]);
  t.deepEqual(closed(), [0, 1]);
  // Both have exceeded 10 s by now; their bytes are read when the process resumes.
  clock.stall(5_000);
  t.deepEqual(closed(), [0, 1]);
  clock.advance(100);
  t.deepEqual(closed(), [0, 1, 2, 3]);
});

test('a client that ends makes room, and one that ends while it waits is not read', async (t) => {
  const { come, read, end } = await start(t);
  await come(4);
  await end(2);
  t.deepEqual(read, [0, 1]);
  await end(0);
  t.deepEqual(read, [0, 1, 3]);
});

test('a connection that is already closed on arrival, or whose client has disconnected, is neither greeted nor read', async (t) => {
  const { entrance, come, came, end, greeted, read } = await start(t);
  await come(1);
  await end(0);
  const gone = new Socket();
  for (const socket of [came[0] ?? gone, gone]) entrance.come(socket);
  t.true(gone.destroyed);
  t.deepEqual([greeted, read], [[0], [0]]);
});
