import { createServer, type TLSSocket } from 'node:tls';
import { Client } from '@grpc/grpc-js';
import test, { type ExecutionContext } from 'ava';
import {
  caCertificate,
  misnamedCertificate,
  serverCertificate,
  type TestCertificate,
} from '../../test/contract/grpc-transport-certificates.ts';
import { listenFor } from '../../test/support/listen.ts';
import { createTlsCredentials } from './client-credentials.ts';

async function connect(t: ExecutionContext, host: string, { cert, key }: TestCertificate) {
  const names: unknown[] = [];
  const server = createServer({ cert, key, ALPNProtocols: ['h2'] }, (socket: TLSSocket) => {
    names.push(socket.servername);
    socket.destroy();
  });
  const port = await listenFor(t, server);
  const client = new Client(
    `${host}:${port}`,
    createTlsCredentials(Buffer.from(caCertificate), null, null),
  );
  t.teardown(() => client.close());
  const failure = await new Promise<string>((resolve) => {
    client.makeUnaryRequest(
      '/none/None',
      (bytes: Buffer) => bytes,
      (bytes) => bytes,
      Buffer.alloc(0),
      { deadline: Date.now() + 30_000 },
      (error) => resolve(error?.message ?? ''),
    );
  });
  return { names, failure };
}

test.serial('a server at an IP address is sent no name; its certificate is checked', async (t) => {
  const warnings: string[] = [];
  const note = ({ message }: Error) => warnings.push(message);
  process.on('warning', note);
  t.teardown(() => process.off('warning', note));
  const { names } = await connect(t, '127.0.0.1', serverCertificate);
  t.true(names.length > 0);
  t.deepEqual([...new Set(names)], [false]);
  const { failure } = await connect(t, '127.0.0.1', misnamedCertificate);
  t.regex(failure, /certificate|altnames/);
  t.deepEqual(warnings, []);
});

test.serial('a server with a host name is sent that name', async (t) => {
  const { names } = await connect(t, 'localhost', serverCertificate);
  t.is(names[0], 'localhost');
});
