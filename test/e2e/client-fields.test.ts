// `Retry-After`, `RateLimit` and `RateLimit-Policy` as a client gets them from a real Envoy, read by a library
// of structured fields.
import test from 'ava';
import { parseList } from 'structured-headers';
import { startEchoServer } from '../support/echo-server.ts';
import { startEnvoy } from '../support/envoy.ts';
import { http2Fields, toCluster, toEnvoyConfig, toListener } from '../support/envoy-config.ts';
import { freePort } from '../support/free-port.ts';
import { startOfWindow } from '../support/window-start.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const rules = `domain: envoy
descriptors:
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: all, value: requests, rate_limit: {unit: day, requests_per_unit: 1000, name: everybody}}
`;
/** What the requests of the test may need. */
const stretchMs = 30_000;

function readList(field: string | null): Record<string, Record<string, unknown>> {
  return Object.fromEntries(
    parseList(field ?? '').map(([name, parameters]) => [
      String(name),
      Object.fromEntries(parameters),
    ]),
  );
}

test('LIMIT_RETRY_AFTER_ENABLED, LIMIT_RATELIMIT_ENABLED, LIMIT_RATELIMIT_POLICY_ENABLED, LIMIT_PARTITION_KEY_SECRET: behind Envoy a client reads its limits, and when to come again', async (t) => {
  const upstreamPort = await startEchoServer(t);
  const worker = await startWorkerProcess(t, {
    env: {
      BACKEND_TYPE: 'memory',
      LIMIT_RETRY_AFTER_ENABLED: 'true',
      LIMIT_RATELIMIT_ENABLED: 'true',
      LIMIT_RATELIMIT_POLICY_ENABLED: 'true',
      LIMIT_PARTITION_KEY_SECRET: 'sesame',
    },
    rules: { 'envoy.yaml': rules },
  });
  const port = await freePort();
  const actions = [
    { actions: [{ request_headers: { header_name: 'x-user', descriptor_key: 'user' } }] },
    { actions: [{ generic_key: { descriptor_key: 'all', descriptor_value: 'requests' } }] },
  ];
  const routes = [{ path: '/', rateLimits: actions }];
  await startEnvoy(
    t,
    toEnvoyConfig(
      [toListener({ port, rateLimit: {}, routes })],
      [
        toCluster('upstream', [upstreamPort]),
        toCluster('workers', [worker.ports.grpc], http2Fields),
      ],
    ),
    port,
  );
  const ask = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-user': 'ada' } });
    await answer.arrayBuffer();
    return answer;
  };

  const windowStart = await startOfWindow('hour', stretchMs);
  const first = await ask();
  t.is(first.status, 200);
  t.is(first.headers.get('retry-after'), null);
  const policies = readList(first.headers.get('ratelimit-policy'));
  t.like(policies, { 'user-hour': { q: 2, w: 3_600 }, everybody: { q: 1_000, w: 86_400 } });
  t.true(policies['user-hour']?.['pk'] instanceof ArrayBuffer);
  const limits = readList(first.headers.get('ratelimit'));
  t.like(limits, { 'user-hour': { r: 1 } });
  // Envoy was asked before, to know that it serves.
  const { r: ofAll } = limits['everybody'] ?? {};
  t.true(typeof ofAll === 'number' && ofAll > 900 && ofAll < 1_000, `${ofAll}`);

  await ask();
  const leftSeconds = () => windowStart + 3_600 - Date.now() / 1000;
  const most = Math.ceil(leftSeconds());
  const refused = await ask();
  t.is(refused.status, 429);
  const retryAfter = Number(refused.headers.get('retry-after'));
  t.true(leftSeconds() <= retryAfter && retryAfter <= most, `${retryAfter} of ${most}`);
  t.like(readList(refused.headers.get('ratelimit')), { 'user-hour': { r: 0, t: retryAfter } });
});
