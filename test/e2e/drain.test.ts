// Two workers behind a balancer that asks for their health, under load on every port: one is told to end, and
// the calls that got no answer are counted.
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../support/eventually.ts';
import { startHttpLoad } from '../support/http-load.ts';
import { startPacedCalls } from '../support/paced-calls.ts';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.ts';

const jsonPerSecond = 300;
const grpcPerSecond = 1_000;
/** How often a balancer looks. */
const healthCheckMs = 100;
const waitMs = 30_000;
const rules = {
  'shop.yaml': `domain: shop
descriptors:
  - key: customer
    rate_limit: {unit: day, requests_per_unit: 1000000}
`,
};
const body = '{"domain":"shop","descriptors":[{"entries":[{"key":"customer","value":"ada"}]}]}';

/** The worker that calls go to: the first one until it says that it is not healthy. */
function startBalancer(t: ExecutionContext, first: WorkerProcess, second: WorkerProcess) {
  let current = first;
  const timer = setInterval(() => {
    fetch(`http://127.0.0.1:${first.ports.http}/healthcheck`).then(
      ({ ok }) => {
        if (!ok) current = second;
      },
      () => {
        current = second;
      },
    );
  }, healthCheckMs);
  t.teardown(() => clearInterval(timer));
  return () => current;
}

async function startTwo(t: ExecutionContext) {
  t.timeout(100_000);
  const start = async () => {
    const worker = await startWorkerProcess({ env: { BACKEND_TYPE: 'memory' }, rules });
    t.teardown(worker.stop);
    return worker;
  };
  const ending = await start();
  const pick = startBalancer(t, ending, await start());
  return { ending, pick };
}

for (const [how, keepAlive] of [
  ['on connections that are kept', true],
  ['on a connection for each', false],
] as const) {
  test.serial(`SIGTERM costs no call of /json ${how} its answer`, async (t) => {
    const { ending, pick } = await startTwo(t);
    const load = startHttpLoad(
      jsonPerSecond,
      () => ({ port: pick().ports.http, path: '/json', body }),
      { keepAlive },
    );
    const goesOn = (count: number) => {
      const seen = load.answers.length;
      return eventually('the load goes on', () => load.answers.length > seen + count, waitMs);
    };
    await goesOn(jsonPerSecond);
    ending.signal('SIGTERM');
    t.is(await ending.waitForEnd(waitMs), 0);
    t.not(pick(), ending);
    await goesOn(jsonPerSecond);
    await load.stop();
    const lost = load.answers.filter(({ status }) => status !== 200);
    t.log(`${lost.length} of ${load.answers.length} calls were lost`);
    t.deepEqual(lost, []);
  });
}

test.serial('nor do calls of /json and gRPC together lose one', async (t) => {
  const { ending, pick } = await startTwo(t);
  const target = () => ({ port: pick().ports.http, path: '/json', body });
  const loads = [true, false].map((keepAlive) =>
    startHttpLoad(jsonPerSecond / 2, target, { keepAlive }),
  );
  const calls = await startPacedCalls(
    ending.ports.grpc,
    grpcPerSecond,
    [{ domain: 'shop', descriptors: [{ entries: [{ key: 'customer', value: 'ada' }] }] }],
    () => pick().ports.grpc,
  );
  const goesOn = (count: number) => {
    const seen = calls.calls.length;
    return eventually('the load goes on', () => calls.calls.length > seen + count, waitMs);
  };
  await goesOn(grpcPerSecond);
  ending.signal('SIGTERM');
  t.is(await ending.waitForEnd(waitMs), 0);
  await goesOn(grpcPerSecond);
  await Promise.all([calls.stop(), ...loads.map((load) => load.stop())]);
  const statuses = loads.flatMap((load) => load.answers.map(({ status }) => status));
  const lostJson = statuses.filter((status) => status !== 200);
  const lostCalls = calls.calls.filter(({ answer }) => answer !== 'OK');
  t.log(
    `${lostJson.length} of ${statuses.length} calls of /json and ${lostCalls.length} of ${calls.calls.length} of gRPC were lost`,
  );
  t.deepEqual([...lostJson, ...lostCalls], []);
});
