// The contracts of shared texts and of the record in them for etcd, and behaviour that only etcd has.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { EngineAccess } from '../../control-plane/server/record/engines/engine-access.ts';
import { engineTimeoutMs } from '../../control-plane/server/record/engines/engine-text.ts';
import { EtcdSharedText } from '../../control-plane/server/record/engines/etcd-shared-text.ts';
import { AppError } from '../../shared/errors.ts';
import { type EtcdServer, startEtcdServer } from '../support/etcd-server.ts';
import { freePort } from '../support/free-port.ts';
import { ownedByFile } from '../support/owner.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { testEngine } from './engine-text.ts';
import {
  caCertificate,
  clientCertificate,
  serverCertificate,
} from './grpc-transport-certificates.ts';

const owner = ownedByFile(test);
const noTls = { ca: undefined, cert: undefined, key: undefined };
const open: EngineAccess = { password: '', passwordFile: undefined, tls: noTls };
const writer: EngineAccess = { ...open, password: 'open' };
let server: EtcdServer;
let proxy: TcpProxy;

test.before(async () => {
  server = await startEtcdServer(owner);
  proxy = await startTcpProxy(owner, server.port);
  const prefix = { key: toBase64('ratelane/record/'), range_end: toBase64('ratelane/record0') };
  for (const [name, permType] of [
    ['reader', 'READ'],
    ['writer', 'READWRITE'],
  ] as const) {
    await server.call('/v3/auth/role/add', { name });
    await server.call('/v3/auth/role/grant', { name, perm: { permType, ...prefix } });
  }
  for (const [name, role] of [
    ['root', 'root'],
    ['reader', 'reader'],
    ['writer', 'writer'],
  ] as const) {
    await server.call('/v3/auth/user/add', { name, password: 'open' });
    if (role === 'root') await server.call('/v3/auth/role/add', { name: role });
    await server.call('/v3/auth/user/grant', { user: name, role });
  }
  await server.call('/v3/auth/enable', {});
});

function openText(name: string, access = writer, username = 'writer', timeoutMs = engineTimeoutMs) {
  const endpoints = [new URL(`http://127.0.0.1:${proxy.port}`)];
  return new EtcdSharedText({ kind: 'etcd', endpoints, username }, name, access, timeoutMs);
}

testEngine(
  test,
  'etcd',
  () => ({ server, proxy }),
  (name) => ({
    open: () => openText(name),
    openFor: (timeoutMs) => openText(name, writer, 'writer', timeoutMs),
    openReadOnly: () => openText(name, writer, 'reader'),
    openWithSecret: (password) => openText(name, { ...open, password }),
  }),
);

test.serial('over TLS, with a certificate that etcd requires', async (t) => {
  const folder = createTemporaryFolder(t);
  const write = (name: string, text: string): string => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };
  const ca = write('ca.pem', caCertificate);
  const secured = await startEtcdServer(t, {
    ca,
    cert: write('server.pem', serverCertificate.cert),
    key: write('server.key', serverCertificate.key),
  });
  const endpoints = [new URL(`https://127.0.0.1:${secured.port}`)];
  const address = { kind: 'etcd', endpoints, username: undefined } as const;
  const client = {
    cert: write('client.pem', clientCertificate.cert),
    key: write('client.key', clientCertificate.key),
  };
  const text = new EtcdSharedText(address, 'a', { ...open, tls: { ca, ...client } });
  t.is((await text.swap(undefined, 'first')).kind, 'written');
  t.is((await text.read())?.text, 'first');
  const stranger = new EtcdSharedText(address, 'a', open);
  await t.throwsAsync(stranger.read(), { message: /self.signed|unable to/i });
});

test.serial('after a member that does not answer, the next one is called', async (t) => {
  const endpoints = [
    new URL(`http://127.0.0.1:${await freePort()}`),
    new URL(`http://127.0.0.1:${proxy.port}`),
  ];
  const text = new EtcdSharedText(
    { kind: 'etcd', endpoints, username: 'writer' },
    randomUUID(),
    writer,
  );
  await t.throwsAsync(text.read(), { message: /ECONNREFUSED/ });
  t.is(await text.read(), undefined);
  t.is((await text.swap(undefined, 'first')).kind, 'written');
});

test.serial('a write whose answer is lost is an error, and is read afterwards', async (t) => {
  const text = openText(randomUUID());
  await text.read();
  const cut = proxy.cutNextReply('/v3/kv/txn');
  await t.throwsAsync(text.swap(undefined, 'first'), { instanceOf: AppError });
  await cut;
  t.is((await text.read())?.text, 'first');
});

test.serial('a token that etcd has dropped is renewed', async (t) => {
  const text = openText(randomUUID());
  t.is(await text.read(), undefined);
  // A new password invalidates the tokens of its user.
  const root = (await server.call('/v3/auth/authenticate', { name: 'root', password: 'open' })) as {
    token: string;
  };
  const changed = await fetch(`http://127.0.0.1:${server.port}/v3/auth/user/changepw`, {
    method: 'POST',
    headers: { authorization: root.token },
    body: JSON.stringify({ name: 'writer', password: 'open' }),
    signal: AbortSignal.timeout(engineTimeoutMs),
  });
  t.true(changed.ok, await changed.text());
  t.is((await text.swap(undefined, 'first')).kind, 'written');
});

function toBase64(text: string): string {
  return Buffer.from(text).toString('base64');
}
