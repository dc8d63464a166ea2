import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { Agent, request } from 'node:https';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import {
  caCertificate,
  renewedCertificate,
  serverCertificate,
} from '../../test/contract/grpc-transport-certificates.ts';
import { createTestDebugServer } from '../../test/support/debug-server.ts';
import { eventually } from '../../test/support/eventually.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createStubMetrics } from '../../test/support/stub-metrics.ts';
import { createTemporaryFolder } from '../../test/support/temporary-folder.ts';
import { createHealth } from '../health.ts';
import { createHttpServer } from './http.ts';

async function writePair(t: ExecutionContext) {
  const folder = createTemporaryFolder(t);
  const files = {
    certFile: join(folder, 'cert.pem'),
    keyFile: join(folder, 'key.pem'),
    metrics: createStubMetrics(),
  };
  await writeFile(files.certFile, serverCertificate.cert);
  await writeFile(files.keyFile, serverCertificate.key);
  return files;
}

async function start(t: ExecutionContext) {
  const files = await writePair(t);
  const log = createRecordedLog();
  const http = createHttpServer(
    {
      shouldRateLimit: () => undefined,
      health: createHealth({ requireConfig: false }),
      log,
      clock: systemClock,
      duration: { observe() {} },
    },
    { host: '127.0.0.1', port: 0, tls: files },
  );
  const { port } = await http.start();
  t.teardown(() => http.stop(0));
  return { port, files, log };
}

/** The status, and the common name in the server's certificate, which a resumed session would not have. */
function get(port: number, path: string, agent: Agent) {
  return new Promise<{ status: number; name: string; body: string }>((resolve, reject) => {
    const call = request(
      { host: '127.0.0.1', port, path, agent, ca: caCertificate },
      (response) => {
        const { CN } = (response.socket as TLSSocket).getPeerCertificate().subject;
        let body = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          body += chunk;
        });
        response.once('end', () =>
          resolve({ status: response.statusCode ?? 0, name: String(CN), body }),
        );
      },
    );
    call.setTimeout(60_000, () => call.destroy(new Error('no answer')));
    call.once('error', reject);
    call.end();
  });
}

// Proof of migrating.md: The HTTP and the debug port may serve over TLS
test('decisions and debug pages are served over TLS', async (t) => {
  const { port, files } = await start(t);
  const agent = new Agent({ keepAlive: false, maxCachedSessions: 0 });
  const health = await get(port, '/healthcheck', agent);
  t.deepEqual(health, { status: 200, name: 'server', body: 'OK' });
  const debug = createTestDebugServer({ tls: files, providers: { rules: () => ['the rules'] } });
  const { port: debugPort } = await debug.start();
  t.teardown(() => debug.stop(0));
  t.is((await get(debugPort, '/rlconfig', agent)).body, 'the rules\n');
  t.regex((await get(debugPort, '/debug/pprof/', agent)).body, /go tool pprof https:/);
});

// Serial, so that nothing in this process delays a handshake by five seconds, which would end it.
test.serial('new certificates are used under load without a failed request', async (t) => {
  const { port, files, log } = await start(t);
  const reused = new Agent({ keepAlive: true, maxSockets: 1, maxCachedSessions: 0 });
  t.teardown(() => reused.destroy());
  const fresh = new Agent({ keepAlive: false, maxCachedSessions: 0 });
  const names = new Set<string>();
  let isLoading = true;
  let requests = 0;
  const load = (async () => {
    while (isLoading) {
      for (const agent of [reused, fresh]) {
        const { status, name } = await get(port, '/healthcheck', agent);
        t.is(status, 200);
        if (agent === reused) names.add(name);
        requests++;
      }
    }
  })();
  const goOn = () => {
    const seen = requests;
    return Promise.race([load, eventually('the load continues', () => requests > seen + 5)]);
  };
  await goOn();
  await writeFile(files.certFile, renewedCertificate.cert);
  await eventually('half of a pair is logged', () =>
    log.lines.some((line) =>
      line.startsWith('error The HTTP port continues with its previous certificates: '),
    ),
  );
  t.is((await get(port, '/healthcheck', fresh)).name, 'server', 'half a pair changes nothing');
  await goOn();
  await writeFile(files.keyFile, renewedCertificate.key);
  await eventually(
    'the new certificate',
    async () => (await get(port, '/healthcheck', fresh)).name === 'renewed',
  );
  // Logged wherever warnings are, as was the refusal before it.
  t.true(log.lines.some((line) => line.startsWith('notice The HTTP port now uses ')));
  await goOn();
  isLoading = false;
  await load;
  t.deepEqual([...names], ['server'], 'the connection that was there stays');
});

test('plain HTTP on a port with TLS ends at once', async (t) => {
  const { port } = await start(t);
  const call = httpRequest({ host: '127.0.0.1', port, path: '/healthcheck', agent: false });
  call.setTimeout(60_000, () => call.destroy(new Error('it hangs')));
  call.end();
  const error: NodeJS.ErrnoException = await once(call, 'error').then(([reason]) => reason);
  t.is(error.code, 'ECONNRESET', error.message);
});

// Takes as long as the limit, which is not adjustable.
test('a caller that does not finish its handshake is disconnected', async (t) => {
  const { port } = await start(t);
  const open = (bytes: Buffer): Promise<unknown> => {
    const socket: Socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    socket.resume();
    if (bytes.length > 0) socket.write(bytes);
    return once(socket, 'close', { signal: AbortSignal.timeout(60_000) });
  };
  // No bytes at all, and the beginning of a record that is never completed.
  await Promise.all([
    t.notThrowsAsync(open(Buffer.alloc(0))),
    t.notThrowsAsync(open(Buffer.from([0x16, 3, 1, 1, 0, 1]))),
  ]);
});

test('a pair that does not match ends the start, and is named with its settings', async (t) => {
  const files = await writePair(t);
  await writeFile(files.keyFile, renewedCertificate.key);
  const debug = createTestDebugServer({ tls: files, providers: { rules: () => [] } });
  const { message } = (await t.throwsAsync(debug.start())) ?? { message: '' };
  t.true(
    message.startsWith(`cannot serve debug over TLS: ${files.certFile} and ${files.keyFile} `),
  );
  t.true(
    message.endsWith('; HTTP_SERVER_TLS_CERT and HTTP_SERVER_TLS_KEY name the files'),
    message,
  );
});
