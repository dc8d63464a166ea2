// Tests TLS with a Redis: which CAs the worker trusts, its client certificate, and files replaced while it runs.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  caCertificate,
  clientCertificate,
  misnamedCertificate,
  serverCertificate,
  strangerCertificate,
  type TestCertificate,
} from '../../contract/grpc-transport-certificates.ts';
import { countOn, createHit } from '../../support/counting.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';
import { createRecordedRedisStore, type RecordedRedisStore } from '../../support/redis-store.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

interface Setup {
  readonly server?: TestCertificate;
  readonly needsClient?: boolean;
  readonly client?: TestCertificate;
  readonly ca?: string;
  readonly skipHostnameVerification?: boolean;
  readonly url?: (port: number) => string;
}

interface Running {
  readonly redis: RedisServer;
  readonly store: RecordedRedisStore;
  readonly tlsPort: number;
  readonly writeClient: (certificate: TestCertificate) => Promise<void>;
}

async function setUp(t: ExecutionContext, setup: Setup): Promise<Running> {
  const folder = createTemporaryFolder(t);
  const path = (name: string) => join(folder, name);
  const { cert, key } = setup.server ?? serverCertificate;
  await writeFile(path('server.pem'), cert);
  await writeFile(path('server.key'), key);
  await writeFile(path('authority.pem'), caCertificate);
  await writeFile(path('ca.pem'), setup.ca ?? caCertificate);
  const writeClient = async (certificate: TestCertificate) => {
    await writeFile(path('client.pem'), certificate.cert);
    await writeFile(path('client.key'), certificate.key);
  };
  if (setup.client !== undefined) await writeClient(setup.client);
  const tlsPort = await freePort();
  const redis = await startRedisServer(t, {
    args: [
      ...['--tls-port', String(tlsPort), '--tls-cert-file', path('server.pem')],
      ...['--tls-key-file', path('server.key'), '--tls-ca-cert-file', path('authority.pem')],
      ...['--tls-auth-clients', setup.needsClient ? 'yes' : 'no'],
    ],
  });
  const store = createRecordedRedisStore(setup.url?.(tlsPort) ?? `127.0.0.1:${tlsPort}`, {
    tls: {
      files: {
        ca: path('ca.pem'),
        cert: setup.client && path('client.pem'),
        key: setup.client && path('client.key'),
      },
      skipHostnameVerification: setup.skipHostnameVerification ?? false,
    },
  });
  t.teardown(() => store.close(0));
  return { redis, store, tlsPort, writeClient };
}

const connect = ({ store }: Running) => store.connect(AbortSignal.timeout(60_000));

async function count(store: RecordedRedisStore, key: string) {
  return countOn(store, [createHit({ key })]);
}

const accepted: [string, Setup][] = [
  ['a server whose certificate is for its address', {}],
  ['a server by its name', { url: (port) => `localhost:${port}` }],
  ['a server by a rediss:// address', { url: (port) => `rediss://127.0.0.1:${port}` }],
  [
    'a certificate for another name, when names are not verified',
    { server: misnamedCertificate, skipHostnameVerification: true },
  ],
  ['a server that asks for a certificate', { needsClient: true, client: clientCertificate }],
];
for (const [what, setup] of accepted) {
  test.serial(`TLS: ${what}`, async (t) => {
    const running = await setUp(t, setup);
    await connect(running);
    t.deepEqual((await count(running.store, 'tls_')).after, [1]);
    t.is(await running.redis.command('GET', 'tls_'), '1');
  });
}

const refused: [string, Setup, RegExp][] = [
  ['a certificate for another name', { server: misnamedCertificate }, /does not match certificate/],
  ['a certificate of another CA', { server: strangerCertificate }, /self-signed|unable to/],
  [
    'a certificate of another CA, even if names are not verified',
    { server: strangerCertificate, skipHostnameVerification: true },
    /self-signed|unable to/,
  ],
  ['no certificate where one is asked for', { needsClient: true }, /alert|closed|ECONNRESET/],
  ['an invalid CA', { ca: 'nothing' }, /ca\.pem is not a certificate/],
];
for (const [what, setup, reason] of refused) {
  test.serial(`TLS fails: ${what}`, async (t) => {
    const running = await setUp(t, setup);
    const stopping = new AbortController();
    const connecting = running.store.connect(stopping.signal);
    await eventually('a warning', () => running.store.log.lines.length > 0);
    t.regex(running.store.log.lines[0] ?? '', reason);
    stopping.abort();
    await t.throwsAsync(connecting);
  });
}

// Proof of migrating.md: TLS files of the store are read again at each connection
test.serial('TLS: a renewed client certificate is used from the next connection on', async (t) => {
  const running = await setUp(t, { needsClient: true, client: strangerCertificate });
  const connecting = connect(running);
  await eventually('a refusal', () => running.store.log.lines.length > 0);
  await running.writeClient(clientCertificate);
  await connecting;
  t.deepEqual((await count(running.store, 'renewed_')).after, [1]);
});
