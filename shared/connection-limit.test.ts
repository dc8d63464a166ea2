import { once } from 'node:events';
import {
  type AddressInfo,
  connect,
  createServer,
  type ListenOptions,
  type Server,
  Socket,
} from 'node:net';
import { join } from 'node:path';
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { caCertificate, serverCertificate } from '../test/contract/grpc-transport-certificates.ts';
import { eventually } from '../test/support/eventually.ts';
import { createManualClock } from '../test/support/manual-clock.ts';
import { pluck } from '../test/support/pluck.ts';
import { createTemporaryFolder } from '../test/support/temporary-folder.ts';
import { type ConnectionLimitOptions, limitConnections } from './connection-limit.ts';

/** A listener whose connections report their use as the test defines it, by the order in which they were accepted. */
async function start(
  t: ExecutionContext,
  max: number,
  unauthenticated?: ConnectionLimitOptions['unauthenticated'],
) {
  const clock = createManualClock();
  const sockets: Socket[] = [];
  const uses: { lastAskedMs: number | undefined; isBusy: boolean }[] = [];
  const closed: string[] = [];
  const server = createServer((socket) => {
    const use = { lastAskedMs: undefined, isBusy: false };
    uses.push(use);
    sockets.push(socket);
    limit.use(socket, use);
    socket.on('error', () => {});
  });
  const limit = limitConnections(server, {
    ...{ max, unauthenticated, clock },
    onClosed: (which) => closed.push(which),
  });
  const port = await listen(t, server);
  const clients: Socket[] = [];
  return {
    clock,
    uses,
    closed,
    /** Authenticates client number `index`. */
    authenticated(index: number) {
      const socket = sockets[index];
      if (socket !== undefined) limit.authenticated(socket);
    },
    async open(localAddress = '127.0.0.1') {
      const client = connect({ port, host: '127.0.0.1', localAddress })
        .on('error', () => {})
        .resume();
      t.teardown(() => client.destroy());
      const count = uses.length;
      clients.push(client);
      await eventually('it has come', () => uses.length > count);
    },
    /** The indices of the clients that were closed. */
    async gone(count: number) {
      const list = () => clients.flatMap((client, index) => (client.closed ? [index] : []));
      await eventually('they are closed', () => list().length >= count);
      return list();
    },
  };
}

async function listen(
  t: ExecutionContext,
  server: Server,
  target: ListenOptions = { port: 0, host: '127.0.0.1' },
): Promise<number> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket));
  t.teardown(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  server.listen(target);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

test('at the limit the oldest connection without a request is closed first', async (t) => {
  const { clock, uses, closed, open, gone } = await start(t, 3);
  for (let index = 0; index < 3; index++) {
    await open();
    clock.advance(1000);
  }
  Object.assign(uses[0] ?? {}, { lastAskedMs: clock.monotonicMs() });
  await open();
  t.deepEqual(await gone(1), [1]);
  clock.advance(1000);
  await open();
  t.deepEqual(await gone(2), [1, 2]);
  t.deepEqual(closed, ['least used', 'least used']);
});

test('if all connections have sent requests, the one with the oldest last request is closed', async (t) => {
  const { clock, uses, open, gone } = await start(t, 3);
  for (let index = 0; index < 3; index++) await open();
  for (const index of [2, 0, 1]) {
    clock.advance(5000);
    Object.assign(uses[index] ?? {}, { lastAskedMs: clock.monotonicMs() });
  }
  await open();
  t.deepEqual(await gone(1), [2]);
});

test('a connection that was just accepted does not count as one without a request', async (t) => {
  const { clock, uses, open, gone } = await start(t, 2);
  await open();
  Object.assign(uses[0] ?? {}, { lastAskedMs: clock.monotonicMs() });
  clock.advance(60_000);
  await open();
  await open();
  t.deepEqual(await gone(1), [0]);
});

test('a connection that waits for an answer is never closed; where all wait, the newest is closed', async (t) => {
  const { uses, closed, open, gone } = await start(t, 2);
  for (let index = 0; index < 2; index++) {
    await open();
    Object.assign(uses[index] ?? {}, { isBusy: true });
  }
  await open();
  t.deepEqual(await gone(1), [2]);
  t.deepEqual(closed, ['newest']);
});

test('the address with most unauthenticated connections loses one, whichever is oldest', async (t) => {
  const { clock, open, gone } = await start(t, 3, { max: 4, limitMs: 60_000 });
  await open('127.0.0.2');
  clock.advance(1000);
  for (let index = 0; index < 6; index++) {
    clock.advance(1);
    await open('127.0.0.3');
  }
  t.deepEqual(await gone(3), [1, 2, 3]);
  await open('127.0.0.2');
  t.deepEqual(await gone(4), [1, 2, 3, 4]);
});

test('an authenticated connection is not closed for unauthenticated ones, and has no time limit', async (t) => {
  const { clock, authenticated, open, gone } = await start(t, 2, { max: 2, limitMs: 15_000 });
  await open();
  clock.advance(1);
  await open();
  for (const index of [0, 1]) authenticated(index);
  clock.advance(60_000);
  for (let index = 0; index < 4; index++) {
    clock.advance(1);
    await open();
  }
  t.deepEqual(await gone(2), [2, 3]);
  authenticated(4);
  t.deepEqual(await gone(3), [0, 2, 3], 'they have their own bound');
});

test('a connection that does not authenticate in time is closed', async (t) => {
  const { clock, open, gone } = await start(t, 2, { max: 2, limitMs: 15_000 });
  await open();
  clock.advance(10_000);
  await open();
  clock.advance(5_000);
  t.deepEqual(await gone(1), [0]);
});

test('several handshakes that begin at one moment each make room for themselves', (t) => {
  const server = createServer();
  limitConnections(server, { max: 100, maxHandshakes: 2, onClosed: () => {} });
  const sockets = Array.from({ length: 4 }, () => new Socket());
  for (const socket of sockets) server.emit('connection', socket);
  t.deepEqual(pluck(sockets, 'destroyed'), [true, true, false, false]);
});

/** Writes `here` over TLS to each connection, none of which is idle. */
function createGreeter(maxHandshakes: number) {
  const { cert, key } = serverCertificate;
  const server = createTlsServer({ cert, key }, (socket) => {
    limit.use(socket, { lastAskedMs: undefined, isBusy: true });
    socket.on('error', () => {});
    socket.write('here');
  });
  const limit = limitConnections(server, { max: 1000, maxHandshakes, onClosed: () => {} });
  return server;
}

test('on a unix socket a finished TLS handshake is not counted as unfinished, in whatever order they finish', async (t) => {
  const server = createGreeter(2);
  const folder = createTemporaryFolder(t);
  const path = join(folder, 'socket');
  await listen(t, server, { path });
  let accepted = 0;
  server.on('connection', () => accepted++);
  const begin = async () => {
    const count = accepted;
    const socket = connect({ path }).on('error', () => {});
    t.teardown(() => socket.destroy());
    await eventually('it is accepted', () => accepted > count);
    return socket;
  };
  const finish = async (socket: Socket) => {
    const secure = connectTls({ socket, ca: caCertificate, servername: 'localhost' });
    await once(secure, 'data', { signal: AbortSignal.timeout(60_000) });
    return secure;
  };
  const finished: TLSSocket[] = [];
  for (let pair = 0; pair < 5; pair++) {
    const both = [await begin(), await begin()];
    for (const socket of both) finished.push(await finish(socket));
  }
  await begin();
  await begin();
  await finish(await begin());
  t.true(finished.every(({ closed }) => !closed));
});

test('the oldest of too many unfinished TLS handshakes is closed first, and callers are served', async (t) => {
  const server = createGreeter(20);
  server.on('tlsClientError', () => {});
  const port = await listen(t, server);
  const call = async () => {
    const socket = connectTls({
      port,
      host: '127.0.0.1',
      ca: caCertificate,
      servername: 'localhost',
    });
    t.teardown(() => socket.destroy());
    const [bytes] = await once(socket, 'data', { signal: AbortSignal.timeout(60_000) });
    t.is(`${bytes}`, 'here');
    return socket;
  };
  const first = await call();
  const attackers = Array.from({ length: 200 }, () => {
    const socket = connect(port, '127.0.0.1')
      .on('error', () => {})
      .resume();
    t.teardown(() => socket.destroy());
    // A handshake record that is never completed.
    socket.write(Buffer.from('16030100c8010000c40303', 'hex'));
    return socket;
  });
  await eventually('all but the newest are gone', () => {
    return attackers.filter(({ closed }) => closed).length === 180;
  });
  await call();
  t.false(first.closed, 'what is connected stays');
});
