// New connections are read some at a time: which of them, in which order, and who makes room.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../../test/support/eventually.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createEntrance } from './entrance.ts';

/** Two are opened at once, in 10 s. Connections are known by the order in which they came. */
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
    socket.on('error', () => {});
    entrance.come(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  t.teardown(() => {
    entrance.close();
    for (const socket of came) socket.destroy();
    server.close();
  });
  return {
    ...{ entrance, clock, came, greeted, read },
    /** So many more. */
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

test('clients beyond the bound are greeted and wait, and are read in their order when others are opened', async (t) => {
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
  // A connection that has been opened has no timer any more.
  t.is(clock.pending, 2);
});

test('a client that takes longer than its time is closed for one that waits, and for no other reason', async (t) => {
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

test('a client that has waited long is read for some turns, also when the process stands still meanwhile', async (t) => {
  const { come, clock, read, closed } = await start(t);
  await come(6);
  clock.advance(10_000);
  t.deepEqual(read, [0, 1, 2, 3]);
  t.deepEqual(closed(), [0, 1]);
  // Both have had more than 10 s by now; what they have sent is read when the process goes on.
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

test('a connection that is closed, or whose client is gone, when it comes is neither greeted nor read', async (t) => {
  const { entrance, come, came, end, greeted, read } = await start(t);
  await come(1);
  await end(0);
  const gone = new Socket();
  for (const socket of [came[0] ?? gone, gone]) entrance.come(socket);
  t.true(gone.destroyed);
  t.deepEqual([greeted, read], [[0], [0]]);
});
