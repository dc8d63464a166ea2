// How Envoy keeps to workers that serve, by health checks over gRPC. Which certificates open a worker's port:
// test/feature/settings/serving.test.ts.
import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';
import { startEchoServer } from '../support/echo-server.ts';
import { startEnvoy } from '../support/envoy.ts';
import {
  http2Fields,
  type JsonObject,
  toCluster,
  toEnvoyConfig,
  toListener,
} from '../support/envoy-config.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

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
  await eventually('both are asked', async () => (await seen()) === '1000000 2000000');
  const file = join(wavering.rulesFolder, 'a.yaml');
  const text = await readFile(file, 'utf8');
  await rm(file);
  await eventually('only one is asked', async () => (await seen()) === '1000000');
  const health = await fetch(`http://127.0.0.1:${wavering.ports.http}/healthcheck`);
  t.is(health.status, 500, 'it runs, and says what it is');
  t.is(wavering.ended(), undefined);
  await writeFile(file, text);
  await eventually('both are asked again', async () => (await seen()) === '1000000 2000000');
  t.pass();
});
