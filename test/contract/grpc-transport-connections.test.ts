// The part of the gRPC transport contract about addresses, TLS, and which clients may connect.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { connect as connectSocket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import test from 'ava';
import type { ListenAddress } from '../../worker/grpc/listen-address.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { Caller, CallerTls } from './grpc-transport-caller.ts';
import {
  caCertificate,
  clientCertificate,
  misnamedCertificate,
  renewedCertificate,
  secondCa,
  serverCertificate,
  strangerCertificate,
} from './grpc-transport-certificates.ts';
import { startTransport } from './grpc-transport-fixture.ts';

test('requests that are not gRPC are refused', async (t) => {
  const caller = await (await startTransport(t)).connect();
  const answer = await caller.call('/test.Echo/Echo', Buffer.of(), {
    'content-type': 'text/html',
  });
  t.is(answer.httpStatus, 415);
  t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
});

test('bytes that are not HTTP/2, or damaged, affect no other connection', async (t) => {
  const { address, connect } = await startTransport(t);
  const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  const settings = Buffer.from('000000040000000000', 'hex');
  let seed = 42;
  const random = (limit: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return seed % limit;
  };
  const randomFrame = () => {
    const body = Buffer.from(Array.from({ length: random(30) }, () => random(256)));
    const head = Buffer.from([0, 0, body.length, random(11), random(256), 0, 0, 0, random(6)]);
    return Buffer.concat([head, body]);
  };
  for (let round = 0; round < 60; round++) {
    const socket = connectSocket({ host: '127.0.0.1', port: address.port });
    socket.on('error', () => {});
    socket.write(round % 6 === 0 ? 'GET / HTTP/1.1\r\n\r\n' : Buffer.concat([preface, settings]));
    for (let index = 0; index < 5; index++) socket.write(randomFrame());
    socket.end();
    socket.resume();
    await once(socket, 'close', { signal: AbortSignal.timeout(60_000) });
  }
  t.is((await (await connect()).call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
});

test('a silent connection is cut after ten seconds, an active one is not', async (t) => {
  const clock = createManualClock();
  const { address, connect, transport } = await startTransport(t, undefined, {}, clock);
  const caller = await connect();
  t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  const pending = clock.pending;
  const silent = connectSocket({ host: '127.0.0.1', port: address.port });
  silent.on('error', () => {});
  silent.resume();
  const closed = once(silent, 'close', { signal: AbortSignal.timeout(60_000) });
  t.true(await waitUntil(() => clock.pending > pending, 60_000));
  clock.advance(10_000);
  await closed;
  t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  caller.close();
  await transport.stop(0);
});

test('a unix socket is served, and its file removed at the end', async (t) => {
  const path = join(createTemporaryFolder(t), 'rl.sock');
  const { connect, transport, address } = await startTransport(t, undefined, { target: { path } });
  t.is(address.text, path);
  const caller = await connect();
  t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  t.true(existsSync(path));
  caller.close();
  await transport.stop(1000);
  t.false(existsSync(path));
});

test("a killed process' socket file is replaced, that of a living one is not", async (t) => {
  const folder = createTemporaryFolder(t);
  const path = join(folder, 'rl.sock');
  await leaveStaleSocket(path);
  t.true(existsSync(path));
  const { connect } = await startTransport(t, undefined, { target: { path } });
  t.is((await (await connect()).call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  await t.throwsAsync(startTransport(t, undefined, { target: { path } }), {
    message:
      `cannot listen for gRPC on the unix socket ${path}: another process listens there; ` +
      'set GRPC_UDS to another path',
  });
  t.is((await (await connect()).call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
});

test('a file that is not a socket is left unchanged', async (t) => {
  const folder = createTemporaryFolder(t);
  const file = join(folder, 'precious.txt');
  writeFileSync(file, 'precious');
  await t.throwsAsync(startTransport(t, undefined, { target: { path: file } }), {
    message:
      `cannot listen for gRPC on the unix socket ${file}: it is a file and not a socket; ` +
      'remove it, or set GRPC_UDS to another path',
  });
  t.true(existsSync(file));
  const missing = join(folder, 'missing', 'rl.sock');
  await t.throwsAsync(startTransport(t, undefined, { target: { path: missing } }), {
    message: new RegExp(`on the unix socket ${missing}: its directory does not exist`),
  });
});

test('TLS serves clients that trust its certificate', async (t) => {
  const { address, connect } = await startTransport(t, undefined, { tls: serverCertificate });
  const caller = await connect({ ca: caCertificate });
  t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  t.false(await isServed(address));
});

// Proof of migrating.md: Client certificates must come from `GRPC_CLIENT_TLS_CACERT`
test('with a client CA, only callers with its certificates are served', async (t) => {
  const { address, connect } = await startTransport(t, undefined, {
    tls: { ...serverCertificate, clientCa: caCertificate },
  });
  const caller = await connect({ ca: caCertificate, ...misnamedCertificate });
  t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  t.false(await isServed(address, { ca: caCertificate }));
  t.false(await isServed(address, { ca: caCertificate, ...strangerCertificate }));
});

test('a client name is searched for only among the alternative names', async (t) => {
  const { address, connect, log } = await startTransport(t, undefined, {
    tls: { ...serverCertificate, clientCa: caCertificate, clientSan: 'proxy.example' },
  });
  const caller = await connect({ ca: caCertificate, ...clientCertificate });
  t.is((await caller.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
  t.false(await isServed(address, { ca: caCertificate, ...misnamedCertificate }));
  t.true(
    log.lines.includes(
      'warning error validating client: its certificate is valid for DNS:other.example, ' +
        'not proxy.example',
    ),
  );
});

test('a certificate can be replaced while connections stay', async (t) => {
  const { connect, transport } = await startTransport(t, undefined, { tls: serverCertificate });
  const before = await connect({ ca: caCertificate });
  t.is(peerName(before), 'server');
  t.throws(() =>
    transport.replaceCertificates({ cert: renewedCertificate.cert, key: serverCertificate.key }),
  );
  t.is(peerName(await connect({ ca: caCertificate })), 'server');
  transport.replaceCertificates(renewedCertificate);
  t.is(peerName(await connect({ ca: caCertificate })), 'renewed');
  t.is((await before.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
});

test('the CA of clients can be replaced while connections stay', async (t) => {
  const { address, connect, transport } = await startTransport(t, undefined, {
    tls: { ...serverCertificate, clientCa: caCertificate },
  });
  const before = await connect({ ca: caCertificate, ...clientCertificate });
  transport.replaceCertificates({ ...serverCertificate, clientCa: secondCa.cert });
  t.false(await isServed(address, { ca: caCertificate, ...clientCertificate }));
  t.true(await isServed(address, { ca: caCertificate, ...secondCa }));
  t.is((await before.call('/test.Echo/Echo', Buffer.of())).grpcStatus, 0);
});

/** True when the server sends first, as HTTP/2 servers do; false when it disconnects instead. */
function isServed(address: ListenAddress, tls?: CallerTls): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const target = { host: '127.0.0.1', port: address.port };
    const socket =
      tls === undefined
        ? connectSocket(target)
        : connectTls({ ...target, ...tls, servername: 'localhost', ALPNProtocols: ['h2'] });
    socket.setTimeout(60_000, () => reject(new Error('neither served nor refused')));
    socket.on('error', () => {});
    socket.once('data', () => resolve(true));
    socket.once('close', () => resolve(false));
    socket.once('data', () => socket.destroy());
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
  });
}

function peerName(caller: Caller): string | undefined {
  const socket = caller.session.socket as unknown as {
    getPeerCertificate(): { subject: { CN?: string } };
  };
  return socket.getPeerCertificate().subject.CN;
}

/** Listens and leaves the socket file behind, as a killed process does. */
async function leaveStaleSocket(path: string): Promise<void> {
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => console.log('up'))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(child.stdout, 'data', { signal: AbortSignal.timeout(60_000) });
  child.kill('SIGKILL');
  await once(child, 'exit');
}
