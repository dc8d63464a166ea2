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
const waitMs = 60_000;
/** A worker serves on for two seconds, or until nobody has asked for a quarter of a second. */
const servedOnMs = 2_000;
const pauseMs = 200;
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

interface Call {
  /** On performance.now(). */
  readonly askedMs: number;
  readonly isLost: boolean;
}

/** Where the machine held up this process for so long that a worker may go, or that the balancer could not learn that
 * it goes, later calls may be lost. */
function findLost(t: ExecutionContext, calls: readonly Call[], signalMs: number): readonly Call[] {
  const lost = calls.filter(({ isLost }) => isLost);
  t.log(`${lost.length} of ${calls.length} calls were lost`);
  let lastMs = signalMs;
  for (const { askedMs } of calls.toSorted((a, b) => a.askedMs - b.askedMs)) {
    if (askedMs - lastMs > pauseMs) break;
    lastMs = Math.max(lastMs, askedMs);
  }
  const promisedMs = Math.min(lastMs, signalMs + servedOnMs);
  return lost.filter(({ askedMs }) => askedMs <= promisedMs);
}

/** SIGTERM; resolves with its time when the worker has ended, and the balancer knows. */
async function end(worker: WorkerProcess, pick: () => WorkerProcess): Promise<number> {
  const signalMs = performance.now();
  worker.signal('SIGTERM');
  const code = await worker.waitForEnd(waitMs);
  if (code !== 0) throw new Error(`the worker ended with ${code}`);
  await eventually('the balancer knows', () => pick() !== worker, waitMs);
  return signalMs;
}

async function startTwo(t: ExecutionContext) {
  t.timeout(300_000);
  const start = async () => {
    const worker = await startWorkerProcess(t, { env: { BACKEND_TYPE: 'memory' }, rules });
    return worker;
  };
  const ending = await start();
  const pick = startBalancer(t, ending, await start());
  return { ending, pick };
}

test.serial(
  'SIGTERM costs no call of /json or gRPC its answer, on connections that are kept or one for each',
  async (t) => {
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
    const loadContinues = (count: number) => {
      const seen = calls.calls.length;
      return eventually('the load goes on', () => calls.calls.length > seen + count, waitMs);
    };
    await loadContinues(grpcPerSecond);
    const signalMs = await end(ending, pick);
    await loadContinues(grpcPerSecond);
    await Promise.all([calls.stop(), ...loads.map((load) => load.stop())]);
    const asked = [
      ...calls.calls.map(({ askedMs, answer }) => ({ askedMs, isLost: answer !== 'OK' })),
      ...loads.flatMap(({ answers }) =>
        answers.map(({ askedMs, status }) => ({ askedMs, isLost: status !== 200 })),
      ),
    ];
    t.deepEqual(findLost(t, asked, signalMs), []);
  },
);
