// The error where the admin API cannot be reached: the reason, and the option that helps.
import { createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import type { Server } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { serverCertificate } from '../../test/contract/grpc-transport-certificates.ts';
import { runInProcess } from '../../test/support/command-run.ts';
import { listenFor } from '../../test/support/listen.ts';

async function listen(t: ExecutionContext, server: Server): Promise<number> {
  return await listenFor(t, server);
}

async function statusAt(url: string, environment: Readonly<Record<string, string>> = {}) {
  const { code, err } = await runInProcess(['status', '--admin-url', url], { environment });
  return { code, err };
}

test('a port with TLS is asked as the hint proposes', async (t) => {
  const port = await listen(
    t,
    createHttpsServer(serverCertificate, (_request, response) => response.end('{}')),
  );
  const plain = await statusAt(`http://127.0.0.1:${port}`);
  t.regex(plain.err, /hint: it may use TLS: write https:\/\/ in --admin-url/);
  const { err } = await statusAt(`https://127.0.0.1:${port}`);
  t.regex(err, /hint: set --ca \(or RATELANE_ADMIN_CA\) to a file with the CA/);
  t.notRegex(err, /use-system-ca/);
  const misnamed = await statusAt(`https://127.0.0.1:${port}`, { RATELANE_ADMIN_CA: '/none/ca' });
  t.regex(misnamed.err, /\/none\/ca cannot be read/);
});

test('a port without TLS is asked as the hint proposes', async (t) => {
  const port = await listen(t, createHttpServer());
  const { err } = await statusAt(`https://127.0.0.1:${port}`);
  t.regex(err, /hint: it may not use TLS: write http:\/\/ in --admin-url/);
});
