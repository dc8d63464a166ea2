// Tests which clients may use the ADS server: TLS, mutual TLS, and tokens in request metadata.
import { connect } from 'node:http2';
import { connect as connectTls } from 'node:tls';
import { credentials } from '@grpc/grpc-js';
import test from 'ava';
import {
  caCertificate,
  clientCertificate,
  renewedCertificate,
  serverCertificate,
  strangerCertificate,
  type TestCertificate,
} from '../../contract/grpc-transport-certificates.ts';
import { callDiscovery, discoveryProtos, snapshotOf, startAds } from '../../support/ads-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const sotw = discoveryProtos.aggregated.StreamAggregatedResources;
const snapshot = snapshotOf({ shop: 'one' });
const node = { id: 'worker-1' };
const trusting = credentials.createSsl(Buffer.from(caCertificate));

/** Without any subject alternative name, and with its own CA. The key protects nothing. */
const namelessCertificate: TestCertificate = {
  cert: `-----BEGIN CERTIFICATE-----
MIIBijCCATGgAwIBAgIUQMlwlO3ApjkOj55hWynJpRG88e8wCgYIKoZIzj0EAwIw
GjEYMBYGA1UEAwwPbmFtZWxlc3Mgd29ya2VyMCAXDTI2MTEyMTA0MDgwN1oYDzIx
MjYxMDI4MDQwODA3WjAaMRgwFgYDVQQDDA9uYW1lbGVzcyB3b3JrZXIwWTATBgcq
hkjOPQIBBggqhkjOPQMBBwNCAAQaibWN7iN1JXQ3KyQXOCNQzmJM9TnVnpCXJd8W
V7N18qnRKQtSUNUp7x3Zpn1jmAui+dEoBwoc5f7wDQ1ujN50o1MwUTAdBgNVHQ4E
FgQUdAoCfHIurwK3whHsMpp86jKHxxcwHwYDVR0jBBgwFoAUdAoCfHIurwK3whHs
Mpp86jKHxxcwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBFYlEo
v7D47bgRJMdpuL8AzgzrLDsW2pWu/Ao8eIi5MwIgKEaB5GewnCXqKST4O/lj0X1M
y132+MEaEgkF06Ea+Jc=
-----END CERTIFICATE-----
`,
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg/cke0fvQJuGhf/2x
/ZKMHtO52LtoMXvoljCW5I8Vy0mhRANCAAQaibWN7iN1JXQ3KyQXOCNQzmJM9TnV
npCXJd8WV7N18qnRKQtSUNUp7x3Zpn1jmAui+dEoBwoc5f7wDQ1ujN50
-----END PRIVATE KEY-----
`,
};

function toTls({ cert, key }: TestCertificate, clientCa?: string) {
  return {
    certificate: cert,
    key,
    ...(clientCa === undefined ? {} : { clientCa }),
  };
}

function presenting({ cert, key }: TestCertificate) {
  const [ca, ...own] = [caCertificate, key, cert].map((pem) => Buffer.from(pem));
  return { credentials: credentials.createSsl(ca, ...own) };
}

test('TLS: a client that trusts the CA gets its configuration', async (t) => {
  const ads = await startAds(t, { snapshot, tls: toTls(serverCertificate) });
  const worker = callDiscovery(t, ads.port, sotw, { node }, { credentials: trusting });
  t.is((await worker.next()).versionInfo, snapshot.version);
});

test('mutual TLS: a certificate of a CA is required, whatever names are in it', async (t) => {
  const cas = caCertificate + namelessCertificate.cert;
  const ads = await startAds(t, { snapshot, tls: toTls(serverCertificate, cas) });
  for (const certificate of [clientCertificate, namelessCertificate]) {
    const worker = callDiscovery(t, ads.port, sotw, { node }, presenting(certificate));
    t.is((await worker.next()).versionInfo, snapshot.version);
    worker.close();
  }
  await eventually('both have left', () => ads.server.workers.list().length === 0);
  let answers = 0;
  for (const certificate of [{}, strangerCertificate]) {
    const session = connect(`https://localhost:${ads.port}`, { ca: caCertificate, ...certificate });
    session.on('error', () => {});
    const stream = session.request({ ':method': 'POST', ':path': sotw.path });
    stream.on('error', () => {});
    stream.on('response', () => answers++);
    await eventually('the stranger is turned away', () => session.destroyed);
  }
  t.is(answers, 0);
  await ads.stop();
  t.true(ads.log.lines.some((line) => line.startsWith('warning xDS: a TLS handshake failed: ')));
});

test('a new certificate applies to new connections, with the same clients admitted', async (t) => {
  const ads = await startAds(t, { snapshot, tls: toTls(serverCertificate, caCertificate) });
  const before = await peerName(ads.port, clientCertificate);
  ads.server.replaceTls(toTls(renewedCertificate, caCertificate));
  t.deepEqual([before, await peerName(ads.port, clientCertificate)], ['server', 'renewed']);
  t.is(await peerName(ads.port, strangerCertificate), undefined);
  t.throws(() => ads.server.replaceTls({ certificate: 'nonsense', key: 'nonsense' }));
  t.is(await peerName(ads.port, clientCertificate), 'renewed');
});

test('a token in the request metadata decides, and the reason does not contain it', async (t) => {
  const ads = await startAds(t, {
    snapshot,
    authorize: (headers) =>
      headers.authorization === 'Bearer secret-one'
        ? { ok: true }
        : { ok: false, reason: 'the token is missing or unknown' },
  });
  const metadata = { authorization: 'Bearer secret-one' };
  const known = callDiscovery(t, ads.port, sotw, { node }, { metadata });
  t.is((await known.next()).versionInfo, snapshot.version);
  for (const metadata of [{}, { authorization: 'Bearer secret-two' }]) {
    const stranger = callDiscovery(t, ads.port, sotw, { node }, { metadata });
    t.like(await stranger.status(), { code: 16, details: 'the token is missing or unknown' });
    stranger.close();
  }
  known.close();
  await ads.stop();
  t.is(ads.log.lines.filter((line) => line.includes('the token is missing')).length, 2);
  t.false(ads.log.lines.some((line) => line.includes('secret')));
});

/** The common name of the server's certificate; undefined when it does not admit the client. */
async function peerName(port: number, certificate: TestCertificate): Promise<string | undefined> {
  const socket = connectTls({
    port,
    ca: caCertificate,
    ...certificate,
    servername: 'localhost',
    ALPNProtocols: ['h2'],
  });
  let name: string | undefined;
  // The server sends first, once it has received our certificate.
  socket.once('data', () => {
    name = String(socket.getPeerCertificate().subject.CN);
    socket.destroy();
  });
  socket.on('error', () => {});
  await eventually('an answer or the end', () => socket.destroyed);
  return name;
}

test('a stream whose token is revoked ends, is no longer a worker, and others stay', async (t) => {
  const clock = createManualClock(Date.now());
  const known = new Set(['Bearer one', 'Bearer two']);
  const reasonAgainst = (token: string) => (known.has(token) ? undefined : 'it is revoked');
  const ads = await startAds(t, {
    ...{ snapshot, clock },
    authorize: ({ authorization = '' }) => ({
      ok: true,
      reasonAgainst: () => reasonAgainst(authorization),
    }),
  });
  const open = async (token: string, id: string) => {
    const metadata = { authorization: `Bearer ${token}` };
    const worker = callDiscovery(t, ads.port, sotw, { node: { id } }, { metadata });
    await worker.next();
    return worker;
  };
  const one = await open('one', 'worker-1');
  await open('two', 'worker-2');
  known.delete('Bearer one');
  clock.advance(10_000);
  t.like(await one.status(), { code: 16, details: 'it is revoked' });
  await eventually('it has left', () => ads.server.workers.list().length === 1);
  t.is(ads.server.workers.list()[0]?.node.id, 'worker-2');
  t.true(ads.log.lines.some((line) => /a call of \S+ was ended: it is revoked$/.test(line)));
});

test('a stream ends when its client certificate has expired, or its CA is removed', async (t) => {
  const clock = createManualClock(Date.now());
  const cas = caCertificate + namelessCertificate.cert;
  const ads = await startAds(t, { snapshot, clock, tls: toTls(serverCertificate, cas) });
  const open = async (certificate: TestCertificate) => {
    const worker = callDiscovery(t, ads.port, sotw, { node }, presenting(certificate));
    await worker.next();
    return worker;
  };
  const nameless = await open(namelessCertificate);
  const known = await open(clientCertificate);
  clock.advance(10_000);
  ads.server.replaceTls(toTls(serverCertificate, caCertificate));
  clock.advance(10_000);
  const gone = await nameless.status();
  t.like(gone, { code: 16 });
  t.regex(gone.details, /^no CA in force has signed the client certificate$/);
  await eventually('one has left', () => ads.server.workers.list().length === 1);
  clock.setWall(Date.UTC(2200, 0));
  clock.advance(10_000);
  const details = 'the client certificate or its CA has expired';
  t.like(await known.status(), { code: 16, details });
});
