// The contracts of shared texts and of the record in them for Redis, and behaviour that only Redis has.
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { EngineAccess } from '../../control-plane/server/record/engines/engine-access.ts';
import { engineTimeoutMs } from '../../control-plane/server/record/engines/engine-text.ts';
import { RedisSharedText } from '../../control-plane/server/record/engines/redis-shared-text.ts';
import { AppError } from '../../shared/errors.ts';
import { ownedByFile } from '../support/owner.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { writeRedisTls } from '../support/redis-tls.ts';
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
let server: RedisServer;
let proxy: TcpProxy;

test.before(async () => {
  server = await startRedisServer(owner);
  proxy = await startTcpProxy(owner, server.port);
  for (const [user, rights] of [
    ['reader', ['+@read', '+watch', '+select', '+multi']],
    ['writer', ['+@read', '+@write', '+@transaction', '+select']],
  ] as const) {
    await server.command('ACL', 'SETUSER', user, 'on', '>open', '~ratelane/record/*', ...rights);
  }
});

function openText(name: string, access = open, username?: string, timeoutMs = engineTimeoutMs) {
  const address = { host: '127.0.0.1', port: proxy.port };
  const target = { kind: 'redis', address, isTls: false, database: 1, username } as const;
  return new RedisSharedText(target, name, access, timeoutMs);
}

testEngine(
  test,
  'redis',
  () => ({ server, proxy }),
  (name) => ({
    // The rights that control-plane/docs/operating.md names.
    open: () => openText(name, { ...open, password: 'open' }, 'writer'),
    openFor: (timeoutMs) => openText(name, open, undefined, timeoutMs),
    openReadOnly: () => openText(name, { ...open, password: 'open' }, 'reader'),
    openWithSecret: (password) => openText(name, { ...open, password }, 'writer'),
  }),
);

test.serial('over TLS, with a certificate that the server requires', async (t) => {
  const files = await writeRedisTls({
    caCertificate,
    server: serverCertificate,
    client: clientCertificate,
  });
  t.teardown(files.remove);
  const secured = await startRedisServer(t, { tls: files.serverArgs });
  const address = { host: 'localhost', port: secured.tlsPort ?? 0 };
  const target = { kind: 'redis', address, isTls: true, database: 0, username: undefined } as const;
  const text = new RedisSharedText(target, 'a', { ...open, tls: files.clientFiles });
  t.is((await text.swap(undefined, 'first')).kind, 'written');
  t.is((await text.read())?.text, 'first');
  const stranger = new RedisSharedText(target, 'a', open);
  await t.throwsAsync(stranger.read(), { message: /self.signed|unable to/i });
  const missing = new RedisSharedText(target, 'a', {
    ...open,
    tls: { ...noTls, ca: '/nowhere.pem' },
  });
  await t.throwsAsync(missing.read(), { message: /^\/nowhere\.pem cannot be read/ });
});

test.serial('a password file is read at each call, and named if it has no password', async (t) => {
  const file = join(createTemporaryFolder(t), 'password');
  const access = { ...open, passwordFile: file };
  const text = openText('of-file', access, 'writer');
  await t.throwsAsync(text.read(), { message: /password of --record cannot be read .*ENOENT/ });
  writeFileSync(file, 'two\nlines\n');
  await t.throwsAsync(text.read(), {
    message: `${file} (--record-password-file) is empty or has several lines`,
  });
  writeFileSync(file, 'open\n');
  t.is((await text.swap(undefined, 'first')).kind, 'written');
});

test.serial('a write whose answer is lost is an error, and is read afterwards', async (t) => {
  const name = randomUUID();
  const text = openText(name);
  const cut = proxy.cutNextReply('EXEC');
  await t.throwsAsync(text.swap(undefined, 'first'), { instanceOf: AppError });
  await cut;
  t.is((await text.read())?.text, 'first');
});

test.serial("an operator's text is read as an empty one, and can be set aside", async (t) => {
  const name = randomUUID();
  const text = openText(name);
  await server.command('SET', `ratelane/record/${name}`, '{}');
  t.is(await text.read(), undefined, 'it is in another database');
  t.like(await text.swap(undefined, 'first'), { kind: 'written' });
  const other = new RedisSharedText(
    {
      kind: 'redis',
      address: { host: '127.0.0.1', port: proxy.port },
      isTls: false,
      database: 0,
      username: undefined,
    },
    name,
    open,
  );
  const read = await other.read();
  t.is(read?.text, '');
  t.is(await other.setAside(read?.version ?? ''), `ratelane/record/${name}.unreadable`);
  t.is(await server.command('GET', `ratelane/record/${name}.unreadable`), '{}');
  t.is(await other.read(), undefined);
});

test.serial('a server that has lost the last write has no text of its version', async (t) => {
  const lossy = await startRedisServer(t);
  const lossyAddress = {
    kind: 'redis',
    address: { host: '127.0.0.1', port: lossy.port },
    isTls: false,
    database: 0,
    username: undefined,
  } as const;
  const text = new RedisSharedText(lossyAddress, 'a', open);
  const first = await text.swap(undefined, 'first');
  await lossy.restart();
  t.is(await text.read(), undefined);
  const before = first.kind === 'written' ? first.version : '';
  t.is((await text.swap(before, 'second')).kind, 'stale');
  t.is((await text.swap(undefined, 'second')).kind, 'written');
});
