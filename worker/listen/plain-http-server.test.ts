import { once } from 'node:events';
import { METHODS } from 'node:http';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createPlainHttpServer, sendText } from './plain-http-server.ts';

async function start(t: ExecutionContext, stallLimitMs: number): Promise<number> {
  const server = createPlainHttpServer(
    {
      name: 'HTTP',
      host: '127.0.0.1',
      port: 0,
      stallLimitMs,
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
  return port;
}

function send(port: number, text: string) {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => {});
  socket.resume();
  socket.write(text);
  return { socket, closed: once(socket, 'close', { signal: AbortSignal.timeout(60_000) }) };
}

test('a caller that stalls is disconnected', async (t) => {
  const port = await start(t, 300);
  // Its request is complete, so that no other limit applies.
  await t.notThrowsAsync(send(port, 'GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n').closed);
});

// Takes as long as the limit, which is not adjustable.
test('a caller that does not finish its headers is disconnected', async (t) => {
  const port = await start(t, 60_000);
  const startMs = performance.now();
  const { socket, closed } = send(port, 'GET / HTTP/1.1\r\n');
  const drip = setInterval(() => socket.write('X-Drip: 1\r\n'), 100);
  t.teardown(() => clearInterval(drip));
  await closed;
  t.true(performance.now() - startMs > 8000);
});

test('at the limit the least used connection is closed, and logged once', async (t) => {
  const log = createRecordedLog();
  const clock = createManualClock();
  const server = createPlainHttpServer(
    {
      ...{ name: 'debug', host: '127.0.0.1', port: 0, stallLimitMs: 30_000 },
      ...{ maxConnections: 2, log, clock },
    },
    (fastify) => {
      fastify.get('/', (_request, reply) => sendText(reply, 200, 'here'));
    },
  );
  const { port } = await server.start();
  t.teardown(async () => {
    const stopping = server.stop(1);
    clock.advance(1);
    await stopping;
  });
  const open = async () => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.setEncoding('utf8');
    await once(socket, 'connect');
    return socket;
  };
  const ask = async (socket: Awaited<ReturnType<typeof open>>) => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    return String(await once(socket, 'data', { signal: AbortSignal.timeout(60_000) }));
  };
  const silent = await open();
  silent.resume();
  const used = await open();
  t.regex(await ask(used), /here/);
  clock.advance(1000);
  const newcomer = await open();
  t.regex(await ask(newcomer), /here/);
  if (!silent.closed) await once(silent, 'close', { signal: AbortSignal.timeout(60_000) });
  t.regex(await ask(used), /here/, 'who is there is served on');
  t.regex(await ask(await open()), /here/);
  const logged = log.lines.filter((line) => line.includes('was closed'));
  t.deepEqual(logged, [
    'warning there are already 2 connections to the debug port: the least used one was closed',
  ]);
});
