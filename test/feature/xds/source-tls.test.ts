// Tests TLS with a management server: which CAs the worker trusts, its client certificate, and files that are replaced
// while it runs.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ServerCredentials } from '@grpc/grpc-js';
import type { ExecutionContext } from 'ava';
import test from 'ava';
import {
  caCertificate,
  clientCertificate,
  misnamedCertificate,
  renewedCertificate,
  serverCertificate,
  strangerCertificate,
  type TestCertificate,
} from '../../contract/grpc-transport-certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { limitResource, startScriptedAdsServer } from '../../support/scripted-ads-server.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';
import { startXdsSource, type XdsSourceRun } from '../../support/xds-source-run.ts';

interface Setup {
  readonly serverCertificate?: TestCertificate;
  readonly needsClientCertificate?: boolean;
  readonly ca?: string;
  readonly client?: TestCertificate;
  readonly san?: string;
  /** Whether the worker uses no TLS. */
  readonly isPlain?: boolean;
}

async function setUp(t: ExecutionContext, setup: Setup) {
  const folder = createTemporaryFolder(t);
  const files = {
    ca: join(folder, 'ca.pem'),
    cert: join(folder, 'cert.pem'),
    key: join(folder, 'key.pem'),
  };
  const writeClient = ({ cert, key }: TestCertificate) => {
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key);
  };
  const { ca = caCertificate, client, needsClientCertificate = false } = setup;
  writeFileSync(files.ca, ca);
  if (client !== undefined) writeClient(client);
  const { cert, key } = setup.serverCertificate ?? serverCertificate;
  const server = await startScriptedAdsServer(t, {
    credentials: ServerCredentials.createSsl(
      Buffer.from(caCertificate),
      [{ cert_chain: Buffer.from(cert), private_key: Buffer.from(key) }],
      needsClientCertificate,
    ),
  });
  const run = await startXdsSource(t, {
    server: {
      url: server.url,
      tls: setup.isPlain
        ? undefined
        : { ca: files.ca, cert: client && files.cert, key: client && files.key, san: setup.san },
    },
  });
  return { server, files, writeClient, ...run };
}

async function refusal({ log }: Pick<XdsSourceRun, 'log'>): Promise<string> {
  const find = () => log.lines.find((line) => line.startsWith('error'));
  await eventually('a line about the failure', () => find() !== undefined);
  return find() ?? '';
}

async function assertRules(
  t: ExecutionContext,
  { server, becomes }: Awaited<ReturnType<typeof setUp>>,
  index = 0,
): Promise<void> {
  const stream = await server.stream(index);
  stream.send('1', 'a', [limitResource('r', 'd', index + 1)]);
  await becomes(`d=${index + 1}`, 'd');
  t.is((await stream.request(1)).versionInfo, '1');
}

test('a server with a certificate of the CA is trusted', async (t) => {
  await assertRules(t, await setUp(t, {}));
});

test('a server with TLS that is called without TLS is reported as one that may require it', async (t) => {
  const run = await setUp(t, { isPlain: true });
  t.regex(
    await refusal(run),
    /Could not reach .*\(check CONFIG_GRPC_XDS_SERVER_URL; if it has TLS, set CONFIG_GRPC_XDS_SERVER_USE_TLS=true\)$/,
  );
});

test('a name that replaces the host rejects a certificate for the host', async (t) => {
  const run = await setUp(t, { san: 'proxy.example' });
  t.regex(await refusal(run), /Could not reach .*proxy\.example/);
  const misnamed = await setUp(t, { serverCertificate: misnamedCertificate, san: 'proxy.example' });
  t.regex(await refusal(misnamed), /Could not reach .*other\.example/);
  t.is(run.server.streams.length + misnamed.server.streams.length, 0);
});

test('a replaced client certificate is used for the next attempt', async (t) => {
  const run = await setUp(t, { needsClientCertificate: true, client: strangerCertificate });
  await refusal(run);
  run.writeClient(clientCertificate);
  await assertRules(t, run);
});

test('a replaced CA is trusted from the next attempt on', async (t) => {
  const run = await setUp(t, { ca: strangerCertificate.cert });
  await refusal(run);
  writeFileSync(run.files.ca, caCertificate);
  await assertRules(t, run);
});

test('files that do not match keep the rules in force, and are reported by name', async (t) => {
  const run = await setUp(t, { needsClientCertificate: true, client: clientCertificate });
  await assertRules(t, run);
  writeFileSync(run.files.key, renewedCertificate.key);
  (await run.server.stream(0)).end();
  const reason = `${run.files.cert} and ${run.files.key} cannot be used`;
  await eventually('the reason', () => run.source.describe().includes(reason));
  t.is(run.limits('d'), 'd=1');
  run.writeClient(clientCertificate);
  await assertRules(t, run, 1);
});
