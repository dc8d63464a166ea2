// A worker that serves over TLS takes up new certificates while it is asked without pause: not one
// call fails, and new connections see the new certificate.
import { writeFile } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import test from 'ava';
import {
  authority,
  clientCertificate,
  renewedCertificate,
  secondAuthority,
  serverCertificate,
} from '../contract/grpc-transport-certificates.ts';
import { eventually } from '../support/eventually.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const rules = `domain: d
descriptors:
  - key: k
    rate_limit: {unlimited: true}
`;

/** The common name that a new connection is shown, or undefined when it is refused. */
function shownName(port: number, client: { cert: string; key: string }) {
  return new Promise<string | undefined>((resolve, reject) => {
    const socket = connectTls({
      host: '127.0.0.1',
      port,
      ca: authority,
      ...client,
      servername: 'localhost',
      ALPNProtocols: ['h2'],
    });
    // With TLS 1.3 a refusal comes after the handshake: only what the server says counts.
    socket.once('data', () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.on('error', () => {});
    socket.once('close', () => resolve(undefined));
    socket.setTimeout(60_000, () => {
      reject(new Error('the server neither says anything nor closes'));
      socket.destroy();
    });
  });
}

test('certificate, key and client authority are replaced under load without a failed call', async (t) => {
  const folder = createTemporaryFolder(t);
  const path = (name: string) => join(folder, name);
  await writeFile(path('cert.pem'), serverCertificate.cert);
  await writeFile(path('key.pem'), serverCertificate.key);
  await writeFile(path('ca.pem'), authority);
  const worker = await startWorkerProcess(t, {
    env: {
      BACKEND_TYPE: 'memory',
      LOG_LEVEL: 'info',
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: path('cert.pem'),
      GRPC_SERVER_TLS_KEY: path('key.pem'),
      GRPC_CLIENT_TLS_CACERT: path('ca.pem'),
    },
    rules: { 'd.yaml': rules },
  });
  const { grpc: port } = worker.ports;
  t.is(await shownName(port, clientCertificate), 'server');

  // Health checks on one connection, one after the other, for as long as the files change.
  const session = connectHttp2(`https://127.0.0.1:${port}`, {
    ca: authority,
    ...clientCertificate,
    servername: 'localhost',
  });
  t.teardown(() => session.destroy());
  const check = () =>
    new Promise<string>((resolve) => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/grpc.health.v1.Health/Check',
        'content-type': 'application/grpc',
        te: 'trailers',
      });
      let status = 'none';
      stream.on('trailers', (trailers) => {
        status = String(trailers['grpc-status']);
      });
      stream.on('error', (error) => resolve(error.message));
      stream.on('close', () => resolve(status));
      stream.resume();
      stream.end(Buffer.alloc(5));
    });
  let isLoading = true;
  const failures: string[] = [];
  let calls = 0;
  const load = (async () => {
    while (isLoading) {
      const status = await check();
      calls++;
      if (status !== '0') failures.push(status);
    }
  })();

  await writeFile(path('cert.pem'), renewedCertificate.cert);
  await eventually('the half of a pair is told', () => worker.output().includes('cannot be used'));
  t.is(await shownName(port, clientCertificate), 'server', 'half a pair changes nothing');
  await writeFile(path('key.pem'), renewedCertificate.key);
  await eventually(
    'the new certificate',
    async () => (await shownName(port, clientCertificate)) === 'renewed',
  );
  await writeFile(path('ca.pem'), secondAuthority.cert);
  await eventually(
    'the new authority of clients',
    async () => (await shownName(port, secondAuthority)) === 'renewed',
  );
  t.is(await shownName(port, clientCertificate), undefined, 'the old authority is trusted no more');
  await eventually('calls in great number', () => calls > 100);
  isLoading = false;
  await load;
  t.deepEqual(failures, []);
});
