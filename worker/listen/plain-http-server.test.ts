import { once } from 'node:events';
import { METHODS } from 'node:http';
import { connect } from 'node:net';
import test from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createPlainHttpServer, sendText } from './plain-http-server.ts';

// Takes as long as the shortest of the limits, which is not adjustable.
test('a caller that does not finish its headers, and one that stalls, are cut', async (t) => {
  const server = createPlainHttpServer(
    {
      name: 'HTTP',
      host: '127.0.0.1',
      port: 0,
      stallLimitMs: 300,
      maxConnections: 10,
      log: createRecordedLog(),
      clock: systemClock,
    },
    (fastify) => {
      fastify.route({
        method: METHODS,
        url: '/stuck',
        handler: async (_request, reply) => {
          await once(reply.raw, 'close');
          return sendText(reply, 200, 'too late');
        },
      });
    },
  );
  const { port } = await server.start();
  t.teardown(() => server.stop(0));
  const startMs = performance.now();
  const open = (text: string) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.resume();
    socket.write(text);
    return { socket, closed: once(socket, 'close', { signal: AbortSignal.timeout(40_000) }) };
  };
  const stalled = open('GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n');
  const dripping = open('GET / HTTP/1.1\r\n');
  const drip = setInterval(() => dripping.socket.write('X-Drip: 1\r\n'), 100);
  t.teardown(() => clearInterval(drip));
  await stalled.closed;
  t.true(performance.now() - startMs < 8000);
  await dripping.closed;
  t.true(performance.now() - startMs > 8000);
});

test('a connection beyond those that there may be is closed as it comes, and told once', async (t) => {
  const log = createRecordedLog();
  const server = createPlainHttpServer(
    {
      ...{ name: 'debug', host: '127.0.0.1', port: 0, stallLimitMs: 30_000 },
      ...{ maxConnections: 2, log, clock: systemClock },
    },
    (fastify) => {
      fastify.get('/', (_request, reply) => sendText(reply, 200, 'here'));
    },
  );
  const { port } = await server.start();
  t.teardown(() => server.stop(0));
  const open = async () => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.setEncoding('utf8');
    await once(socket, 'connect');
    return socket;
  };
  const ask = async (socket: Awaited<ReturnType<typeof open>>) => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    return String(await once(socket, 'data', { signal: AbortSignal.timeout(10_000) }));
  };
  const [one, two] = [await open(), await open()];
  t.regex(await ask(one), /here/);
  t.regex(await ask(two), /here/);
  for (let index = 0; index < 3; index++) {
    const refused = await open();
    refused.resume();
    await once(refused, 'close', { signal: AbortSignal.timeout(10_000) });
  }
  t.regex(await ask(one), /here/, 'who is there is served on');
  const told = log.lines.filter((line) => line.includes('one more was closed'));
  t.is(told[0], 'warning there are 2 connections to the debug port already, one more was closed');
  t.true(told.length <= 2);
});
