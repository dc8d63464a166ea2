// Two workers behind one Envoy under load, with the sample configuration: one is terminated or killed, and the effects
// on callers are counted. Envoy refuses undecided requests, which makes them visible.
import test, { type ExecutionContext } from 'ava';
import { startEnvoy } from '../support/envoy.ts';
import { generousTimes, readEnvoySample } from '../support/envoy-sample.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startLoad } from '../support/steady-load.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const perSecond = 300;
const testMs = 300_000;
const waitMs = 60_000;
const rules = `domain: shop
descriptors:
  - {key: customer, rate_limit: {unit: day, requests_per_unit: 1000000}}
`;

/** Sends the signal to one of two workers under load; returns the requests that failed, and those that could have. */
async function endOne(
  t: ExecutionContext,
  signal: 'SIGTERM' | 'SIGKILL',
  changes: Parameters<typeof readEnvoySample>[1] = [],
) {
  t.timeout(testMs);
  const redis = await startRedisServer(t);
  const start = () =>
    startWorkerProcess(t, {
      env: { KVSTORE_URL: redis.url, LIMIT_RESPONSE_HEADERS_ENABLED: 'true' },
      rules: { 'shop.yaml': rules },
    });
  const ending = await start();
  const staying = await start();
  const [port, shopPort, adminPort] = [await freePort(), await freePort(), await freePort()];
  const sample = await readEnvoySample(
    { port, shopPort, workerPorts: [ending.ports.grpc, staying.ports.grpc] },
    [
      ...generousTimes,
      ['failure_mode_deny: false', 'failure_mode_deny: true'],
      ['interval: 5s', 'interval: 1s'],
      ...changes,
    ],
  );
  const admin = `admin: {address: {socket_address: {address: 127.0.0.1, port_value: ${adminPort}}}}\n`;
  const envoy = await startEnvoy(t, sample + admin, port);
  /** The number of connections to workers that Envoy has seen end. */
  const countEnded = async () => {
    const stats = await fetch(`http://127.0.0.1:${adminPort}/stats?filter=ratelane.upstream_cx_d`);
    return Number(/upstream_cx_destroy: (\d+)/.exec(await stats.text())?.[1]);
  };

  const decided = async ({ ports }: typeof ending) => {
    const stats = await fetch(`http://127.0.0.1:${ports.debug}/stats`);
    return Number(/rate_limit\.shop\.customer\.total_hits: (\d+)/.exec(await stats.text())?.[1]);
  };
  /** 0 if there was no answer. */
  const ask = () =>
    fetch(`http://127.0.0.1:${port}/`, { headers: { 'x-customer': 'ada' } }).then(
      async (answer) => {
        await answer.body?.cancel();
        return { status: answer.status };
      },
      () => ({ status: 0 }),
    );
  await eventually('both workers are asked', async () => {
    const probe = startLoad(perSecond, ask);
    await eventually('answers', () => probe.results.length > 5);
    await probe.stop();
    return (await decided(ending)) > 0 && (await decided(staying)) > 0;
  });

  const load = startLoad(perSecond, ask);
  const loadContinues = (count: number) => {
    const seen = load.results.length;
    return eventually('the load continues', () => load.results.length > seen + count, waitMs);
  };
  await loadContinues(perSecond);
  const inFlight = load.open;
  const endedBefore = await countEnded();
  const signalMs = performance.now();
  ending.signal(signal);
  const end = await ending.waitForEnd(waitMs);
  await eventually('Envoy knows', async () => (await countEnded()) > endedBefore);
  const knownMs = performance.now();
  // Longer than Envoy's health check needs to notice it.
  await loadContinues(4 * perSecond);
  await load.stop();

  const failed = load.results.filter(({ status }) => status !== 200);
  /** Requests sent before Envoy could know that the process was gone, and not answered before the signal. */
  const concerned = load.results.filter(
    ({ startedMs, tookMs }) => startedMs <= knownMs && startedMs + tookMs >= signalMs,
  );
  t.log(
    `${signal}: ${failed.length} of ${load.results.length} requests failed; in flight ${inFlight} ` +
      `at the signal, ${concerned.length} until Envoy knew (${Math.round(knownMs - signalMs)} ms)`,
  );
  return { end, failed, concerned, output: envoy.output() };
}

test.serial('a worker that gets SIGTERM under load costs no caller its answer', async (t) => {
  const { end, failed, output } = await endOne(t, 'SIGTERM');
  t.is(end, 0);
  t.deepEqual(failed, [], output);
});

// Proof of migrating.md: After the signal to stop, answers direct Envoy to other workers
// (`x-envoy-immediate-health-check-fail`); the port closes when it does
test.serial('nor does it where Envoy does not retry', async (t) => {
  const { end, failed, output } = await endOne(t, 'SIGTERM', [
    ['num_retries: 2', 'num_retries: 0'],
    // Not by chance either: Envoy must be notified, since its health checks are too far apart.
    ['interval: 1s', 'interval: 60s'],
  ]);
  t.is(end, 0);
  t.deepEqual(failed, [], output);
});

test.serial('a killed worker costs at most the requests that were in flight', async (t) => {
  const { end, failed, concerned } = await endOne(t, 'SIGKILL');
  t.is(end, 'SIGKILL');
  t.deepEqual(
    failed.filter((each) => !concerned.includes(each)),
    [],
  );
});
