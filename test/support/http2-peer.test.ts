import { once } from 'node:events';
import { createServer, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { errorCodes, flags, frameTypes, toCall, toHeaders, toPing } from './http2-frames.ts';
import { createHttp2Peer } from './http2-peer.ts';

async function start(t: ExecutionContext) {
  const server: Http2Server = createServer();
  const sessions = new Set<{ destroy(): void }>();
  server.on('session', (session) => sessions.add(session));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const peer = await createHttp2Peer({ port: (server.address() as AddressInfo).port });
  t.teardown(() => {
    peer.close();
    for (const session of sessions) session.destroy();
    server.close();
  });
  return { server, peer };
}

test('what the peer sends is HTTP/2 to another implementation, and the answer is found', async (t) => {
  const { server, peer } = await start(t);
  const seen: unknown[] = [];
  server.on('stream', (stream, headers) => {
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    stream.on('end', () => {
      seen.push(headers[':path'], headers['te'], Buffer.concat(chunks));
      stream.respond({ ':status': 200 });
      stream.write('one');
      stream.end('two');
    });
  });
  await peer.greet();
  peer.send(toCall(1, `/${'long'.repeat(100)}`, Buffer.from('x')), toPing());
  t.is(String(await peer.answer(1)), 'onetwo');
  t.deepEqual(seen, [`/${'long'.repeat(100)}`, 'trailers', Buffer.from([0, 0, 0, 0, 1, 120])]);
  const pong = await peer.frame('PONG', ({ type }) => type === frameTypes.ping);
  t.is(pong.flags, flags.ack);
  t.is(String(pong.payload), 'pingpong');
});

test('a GOAWAY is read, and the end of the connection is noticed', async (t) => {
  const { peer } = await start(t);
  await peer.greet();
  t.false(peer.isEnded);
  // Stream identifiers of clients are odd.
  peer.send(toHeaders(2, [[':method', 'GET']]));
  t.is((await peer.goAway()).code, errorCodes.protocol);
  await peer.ended();
  t.true(peer.isEnded);
});

test('what does not come is named, with what came instead', async (t) => {
  const { peer } = await start(t);
  await peer.greet();
  await t.throwsAsync(peer.answer(1, 50), {
    message:
      /^waited 50 ms in vain for the end of stream 1: of \d frames the last were \[settings /,
  });
});
