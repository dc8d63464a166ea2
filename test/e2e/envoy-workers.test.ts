// How Envoy keeps to workers that serve, and workers to Envoys that may ask: health checks over gRPC,
// and certificates on both sides.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import {
  authority,
  clientCertificate,
  misnamedCertificate,
  serverCertificate,
  strangerCertificate,
  type TestCertificate,
} from '../contract/grpc-transport-certificates.ts';
import { startEchoServer } from '../support/echo-server.ts';
import { startEnvoy } from '../support/envoy.ts';
import {
  http2Fields,
  type JsonObject,
  toCluster,
  toEnvoyConfig,
  toExtension,
  toListener,
} from '../support/envoy-config.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const waitMs = 30_000;
/** Both workers have been asked after so many requests in turn. */
const rounds = 10;
const memory = { BACKEND_TYPE: 'memory', LIMIT_RESPONSE_HEADERS_ENABLED: 'true' };
const healthChecked: JsonObject = {
  ...http2Fields,
  health_checks: [
    {
      timeout: '5s',
      interval: '0.2s',
      no_traffic_interval: '0.2s',
      unhealthy_threshold: 1,
      healthy_threshold: 1,
      grpc_health_check: { service_name: 'ratelimit' },
    },
  ],
};
const routes = [
  {
    path: '/',
    rateLimits: [
      { actions: [{ request_headers: { header_name: 'x-who', descriptor_key: 'who' } }] },
    ],
  },
];

function rules(limit: number): string {
  return `domain: envoy
descriptors:
  - {key: who, rate_limit: {unit: year, requests_per_unit: ${limit}}}
`;
}

test.serial('a worker that is not healthy is taken out, and comes back', async (t) => {
  t.timeout(100_000);
  const upstream = await startEchoServer();
  t.teardown(upstream.stop);
  // Told apart by their limits.
  const steady = await startWorkerProcess(t, {
    env: memory,
    rules: { 'a.yaml': rules(1_000_000) },
  });
  const wavering = await startWorkerProcess(t, {
    env: { ...memory, HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED: 'true' },
    rules: { 'a.yaml': rules(2_000_000) },
  });
  const port = await freePort();
  await startEnvoy(
    t,
    toEnvoyConfig(
      [toListener({ port, rateLimit: {}, routes })],
      [
        toCluster('upstream', [upstream.port]),
        toCluster('workers', [steady.ports.grpc, wavering.ports.grpc], healthChecked),
      ],
    ),
    port,
  );
  /** The limits of those who answered. */
  const seen = async () => {
    const limits = new Set<string | null>();
    for (let round = 0; round < rounds; round++) {
      const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-who': 'ada' } });
      await answer.body?.cancel();
      limits.add(
        answer.status === 200 ? answer.headers.get('ratelimit-limit') : `${answer.status}`,
      );
    }
    return [...limits].sort().join(' ');
  };
  await eventually('both are asked', async () => (await seen()) === '1000000 2000000', waitMs);
  const file = join(wavering.rulesFolder, 'a.yaml');
  const text = await readFile(file, 'utf8');
  await rm(file);
  await eventually('only one is asked', async () => (await seen()) === '1000000', waitMs);
  const health = await fetch(`http://127.0.0.1:${wavering.ports.http}/healthcheck`);
  t.is(health.status, 500, 'it runs, and says what it is');
  t.is(wavering.ended(), undefined);
  await writeFile(file, text);
  await eventually(
    'both are asked again',
    async () => (await seen()) === '1000000 2000000',
    waitMs,
  );
  t.pass();
});

/** The end of TLS at an Envoy that shows this certificate. */
function toTlsFields(certificate: TestCertificate | undefined): JsonObject {
  const shown = certificate && [
    {
      certificate_chain: { inline_string: certificate.cert },
      private_key: { inline_string: certificate.key },
    },
  ];
  return {
    ...http2Fields,
    transport_socket: toExtension(
      'envoy.transport_sockets.tls',
      'extensions.transport_sockets.tls.v3.UpstreamTlsContext',
      {
        sni: 'localhost',
        common_tls_context: {
          ...(shown && { tls_certificates: shown }),
          validation_context: {
            trusted_ca: { inline_string: authority },
            match_typed_subject_alt_names: [{ san_type: 'DNS', matcher: { exact: 'localhost' } }],
          },
        },
      },
    ),
  };
}

test.serial('only an Envoy with the right certificate is answered', async (t) => {
  t.timeout(100_000);
  const folder = createTemporaryFolder(t);
  const path = (name: string) => join(folder, name);
  await writeFile(path('cert.pem'), serverCertificate.cert);
  await writeFile(path('key.pem'), serverCertificate.key);
  await writeFile(path('ca.pem'), authority);
  const worker = await startWorkerProcess(t, {
    env: {
      ...memory,
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: path('cert.pem'),
      GRPC_SERVER_TLS_KEY: path('key.pem'),
      GRPC_CLIENT_TLS_CACERT: path('ca.pem'),
      GRPC_CLIENT_TLS_SAN: 'proxy.example',
    },
    rules: { 'a.yaml': rules(1) },
  });
  const upstream = await startEchoServer();
  t.teardown(upstream.stop);
  const fields = {
    right: toTlsFields(clientCertificate),
    misnamed: toTlsFields(misnamedCertificate),
    stranger: toTlsFields(strangerCertificate),
    none: toTlsFields(undefined),
    plain: http2Fields,
  };
  const names = Object.keys(fields) as (keyof typeof fields)[];
  const ports = {} as Record<keyof typeof fields, number>;
  for (const name of names) ports[name] = await freePort();
  const envoy = await startEnvoy(
    t,
    toEnvoyConfig(
      names.map((name) => {
        const grpcService = { envoy_grpc: { cluster_name: name } };
        const service = { transport_api_version: 'V3', grpc_service: grpcService };
        return toListener({
          port: ports[name],
          rateLimit: { rate_limit_service: service },
          routes,
        });
      }),
      [
        toCluster('upstream', [upstream.port]),
        ...names.map((name) => toCluster(name, [worker.ports.grpc], fields[name])),
      ],
    ),
    ports.right,
  );
  const ask = async (name: keyof typeof fields) => {
    const answer = await fetch(`http://127.0.0.1:${ports[name]}/`, { headers: { 'x-who': 'ada' } });
    await answer.body?.cancel();
    return answer.status;
  };
  // Refused by Envoy, because it got no decision; the worker has counted nothing.
  for (const name of names.filter((each) => each !== 'right')) t.is(await ask(name), 500, name);
  t.is(await ask('right'), 200, envoy.output());
  t.is(await ask('right'), 429);
});
