// Runs the probes of the Helm chart and the commands in its notes against running programs, with the settings, files
// and certificates that the chart gives to its pods.
import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer as createHttpServer, type IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import test, { type ExecutionContext } from 'ava';
import { caCertificate, serverCertificate } from '../contract/grpc-transport-certificates.ts';
import { createChartRelease, startPrograms } from '../support/chart-release.ts';
import { createStandIns } from '../support/chart-stand-ins.ts';
import { eventually } from '../support/eventually.ts';
import { testWith } from '../support/installed-tool.ts';
import { listenFor } from '../support/listen.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { writeRedisTls } from '../support/redis-tls.ts';
import type { Secrets } from '../support/rendered-chart.ts';

const testChart = testWith(test.serial, 'chart-check');
const commandMs = 90_000;
const probeMs = 60_000;
const programs = ['worker', 'control-plane'] as const;
const probes = ['startupProbe', 'livenessProbe', 'readinessProbe'] as const;

const certificate = {
  'tls.crt': serverCertificate.cert,
  'tls.key': serverCertificate.key,
  'ca.crt': caCertificate,
};
const workerToken = 'the-token-of-the-workers';
const storePassword = 'the-password-of-redis';
const signingSecret = 'the-secret-of-calls';
const withTls = {
  worker: {
    storeSecret: 'redis',
    storeTlsSecret: 'tls',
    storeTlsClient: true,
    xdsTokenSecret: 'worker-token',
    tlsSecret: 'tls',
    tlsCa: true,
    xdsTlsSecret: 'tls',
    recordDecisions: true,
    settings: { RECORD_DECISIONS_RATE: 1 },
  },
  controlPlane: {
    notify: { urlSecret: 'chat', signingSecret: 'notify' },
    peersTokenSecret: 'fleet',
    adminTokensSecret: 'admin',
    xdsTokensSecret: 'xds',
    xdsTlsSecret: 'tls',
    adminTlsSecret: 'tls',
    adminTlsCa: true,
  },
};
const secretsWithTls: Secrets = {
  tls: certificate,
  fleet: { token: 'the-token-of-the-fleet' },
  admin: { tokens: 'ann write the-token-of-ann-that-writes\n' },
  xds: { tokens: `fleet xds ${workerToken}\n` },
  'worker-token': { token: `${workerToken}\n` },
  redis: { password: `${storePassword}\n` },
  notify: { secret: `${signingSecret}\n` },
};

const clientCa = '/run/secrets/admin-tls/ca.crt';
const withClientCertificates = {
  ...withTls,
  controlPlane: {
    ...withTls.controlPlane,
    settings: { RATELANE_ADMIN_TLS_CLIENT_CA: clientCa },
  },
};

for (const [title, values, secrets] of [
  ['as it comes', {}, {}],
  ['with TLS and tokens', withTls, secretsWithTls],
  ['with an admin port that asks for certificates', withClientCertificates, secretsWithTls],
] as const) {
  testChart(`the chart ${title}: probes pass, and each command of its notes works`, async (t) => {
    t.timeout(4 * commandMs);
    const isProtected = title !== 'as it comes';
    const receiver = await startReceiver(t);
    const given = 'worker' in values ? values.worker : { settings: {} };
    const settings = { ...given.settings, KVSTORE_URL: await startStore(t, isProtected) };
    const release = await createChartRelease(
      t,
      { ...values, worker: { ...given, settings } },
      { ...secrets, chat: { url: receiver.url } },
    );
    const output = await startPrograms(t, release);
    for (const program of programs) {
      for (const probe of probes) {
        await eventually(
          `${program}: ${probe}`,
          () => release.isPassed(program, probe),
          probeMs,
        ).catch((error) => t.fail(`${error.message}\n${output()}`));
      }
    }
    const standIns = createStandIns(release.folder);
    standIns.use(release);
    writeFileSync(join(release.folder, 'write-token'), 'the-token-of-ann-that-writes');
    const commands = readCommands(release.notes);
    t.true(commands.length >= 7, release.notes);
    for (const command of commands.filter((each) => !each.includes('port-forward'))) {
      const { code, output } = await standIns.run(release.install(command), commandMs);
      // A rollout that is not running cannot be aborted, but only a token with write access receives that answer.
      t.is(code, command.includes('rollout abort') ? 5 : 0, `${command}\n${output}`);
    }
    t.is(
      commands.some((each) => each.includes('rollout abort')),
      isProtected,
    );
    if (isProtected) {
      await eventually('a notification arrives', () => receiver.calls.length > 0, probeMs);
      const [{ headers, body }] = receiver.calls as [Call];
      const signature = createHmac('sha256', signingSecret).update(body).digest('hex');
      t.like(headers, {
        'x-ratelane-event': 'in-force',
        'x-ratelane-signature-256': `sha256=${signature}`,
      });
    }
    t.is(receiver.calls.length, isProtected ? 1 : 0);
    for (const forward of commands.filter((each) => each.includes('port-forward'))) {
      const [, kind = '', name = '', port] =
        /(service|deployment)\/(\S+) \d+:?(\d+)?/.exec(forward) ?? [];
      t.truthy(release.find(kind === 'service' ? 'Service' : 'Deployment', name), forward);
      if (port !== undefined) t.is(Number(port), release.ports.debug);
    }
    const status = await fetch(`http://127.0.0.1:${release.ports.debug}/status`);
    t.regex(await status.text(), /waiting for: nothing, it is serving/);
  });
}

testChart('programs that wait for a store are not restarted, and get no callers', async (t) => {
  const port = await listenFor(t, createServer());
  const release = await createChartRelease(t, {
    worker: { settings: { KVSTORE_URL: `127.0.0.1:${port}` } },
    controlPlane: { git: { url: `http://127.0.0.1:${port}/rules.git` } },
  });
  await startPrograms(t, release);
  for (const program of programs) {
    await eventually(`${program} lives`, () => release.isPassed(program, 'startupProbe'), probeMs);
    t.true(await release.isPassed(program, 'livenessProbe'), program);
    t.false(await release.isPassed(program, 'readinessProbe'), program);
  }
});

testChart('the debug port of a worker cannot be reached from outside of its pod', async (t) => {
  const release = await createChartRelease(t, {});
  const { spec } = release.find('Deployment', 'sample-ratelane-worker').spec.template;
  t.is(release.environmentOf(spec.containers[0])['DEBUG_HOST'], '127.0.0.1');
});

/** The store's address. The protected store requires a password and a certificate. */
async function startStore(t: ExecutionContext, isProtected: boolean): Promise<string> {
  if (!isProtected) {
    const redis = await startRedisServer(t);
    return redis.url;
  }
  const tls = await writeRedisTls({
    caCertificate,
    server: serverCertificate,
    client: serverCertificate,
  });
  t.teardown(tls.remove);
  const redis = await startRedisServer(t, {
    tls: tls.serverArgs,
    args: ['--requirepass', storePassword],
    auth: [storePassword],
  });
  return `localhost:${redis.tlsPort}`;
}

interface Call {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

async function startReceiver(t: ExecutionContext) {
  const calls: Call[] = [];
  const server = createHttpServer(async (request, response) => {
    calls.push({ headers: request.headers, body: await text(request) });
    response.end();
  });
  return { url: `http://127.0.0.1:${await listenFor(t, server)}/hook`, calls };
}

/** The commands in NOTES.txt, one per line. */
function readCommands(notes: string): string[] {
  return notes
    .replaceAll(/\\\n\s+/g, '')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => /^(kubectl|helm) /.test(line));
}
