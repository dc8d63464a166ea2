// Tests how the HTTP/2 engine closes a connection if the peer does something unexpected meanwhile.
// ../contract/grpc-transport-connection-ends.test.ts tests what every transport must do at its end.
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { connect as connectTls } from 'node:tls';
import test from 'ava';
import { caCertificate, serverCertificate } from '../contract/grpc-transport-certificates.ts';
import { recordCalls, startTransport } from '../contract/grpc-transport-fixture.ts';
import {
  errorCodes,
  flags,
  frameTypes,
  toCall,
  toFrame,
  toWindowUpdate,
} from '../support/http2-frames.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { waitUntil } from '../support/wait-until.ts';

test('a call that came too late is not among those that may have been processed', async (t) => {
  const calls = recordCalls();
  const methods = { '/test.Echo/Echo': calls.method };
  const { transport, connectPeer } = await startTransport(t, methods, {}, createManualClock());
  const peer = await connectPeer();
  peer.send(toCall(1, '/test.Echo/Echo', Buffer.from('x')));
  t.true(await waitUntil(() => calls.replies.length === 1, 60_000));
  const stopped = transport.stop(30_000);
  const { payload } = await peer.frame('PING', ({ type }) => type === frameTypes.ping);
  const isLast = ({ type, payload: bytes }: { type: number; payload: Buffer }) =>
    type === frameTypes.goAway && bytes.readUInt32BE() === 1;
  peer.send(toFrame(frameTypes.ping, flags.ack, 0, payload));
  await peer.frame('GOAWAY', isLast);
  peer.send(toCall(3, '/test.Echo/Echo', Buffer.from('late')), toWindowUpdate(0, 0));
  await peer.ended();
  t.like(await peer.goAway(), { code: errorCodes.protocol, lastStreamId: 1 });
  t.is(calls.replies.length, 1);
  await stopped;
});

test('a handshake that ends after the stop has begun does not delay the stop', async (t) => {
  // On its stopped clock, no greeting times out.
  const clock = createManualClock();
  const { transport, address } = await startTransport(t, {}, { tls: serverCertificate }, clock);
  const socket = connectTcp({ host: '127.0.0.1', port: address.port ?? 0 });
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  t.true(await waitUntil(() => transport.turnAway(), 60_000));
  const stopped = transport.stop(60_000);
  const secure = connectTls({
    socket,
    ca: caCertificate,
    ALPNProtocols: ['h2'],
    host: 'localhost',
  });
  secure.on('error', () => {});
  secure.resume();
  await stopped;
  t.pass();
});
