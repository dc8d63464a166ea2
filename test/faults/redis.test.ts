// What happens on the way from a worker to Redis: what is slow is waited for, what is broken fails its
// decisions in time and by name, nothing is counted twice, and decisions come back by themselves.
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../support/eventually.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { type Fault, startTcpProxy } from '../support/tcp-proxy.ts';
import { startWorker } from '../support/worker-in-process.ts';
import { askThroughFault } from './faulty-load.ts';

/** Beyond what the product promises, for a busy machine. */
const slackMs = 15_000;
const rules = `domain: d
descriptors:
  - key: k
    rate_limit: {unit: year, requests_per_unit: 1000000}
`;

async function goThrough(t: ExecutionContext, fault: Fault) {
  const redis = await startRedisServer(t);
  const proxy = await startTcpProxy(t, redis.port);
  const url = `127.0.0.1:${proxy.port}`;
  const isBreaking = fault.kind !== 'latency' && fault.kind !== 'drip';
  // What is only slow must not fail, so there the machine may stand still for longer.
  const timeoutMs = isBreaking ? 2_000 : 6_000;
  const worker = await startWorker(t, {
    env: { KVSTORE_URL: url, KVSTORE_TIMEOUT: `${timeoutMs}ms`, KVSTORE_POOL_SIZE: '2' },
    rules,
  });
  const { decisions, asked, injectedMs, healedMs } = await askThroughFault(
    worker,
    proxy,
    fault,
    (during) => !isBreaking || during.filter(({ failure }) => failure).length >= 20,
  );
  const failed = decisions.filter(({ failure }) => failure !== undefined);
  const longestMs = Math.max(...decisions.map(({ askedMs, answeredMs }) => answeredMs - askedMs));
  t.true(longestMs < timeoutMs + slackMs, `${longestMs} ms`);
  const recoveredMs =
    Math.min(
      ...decisions
        .filter(({ failure, askedMs }) => failure === undefined && askedMs >= healedMs)
        .map(({ answeredMs }) => answeredMs),
    ) - healedMs;
  t.true(recoveredMs < slackMs, `${recoveredMs} ms`);
  // Who waits in vain without a fault meets a machine that stands still, and others fail with them.
  const stoodStill = failed.some(
    ({ askedMs, answeredMs }) => answeredMs < injectedMs && answeredMs - askedMs >= timeoutMs - 100,
  );
  for (const { failure: text = '', answeredMs, askedMs } of failed) {
    t.true(text.includes(`key-value store ${url}: `), text);
    t.true(answeredMs >= injectedMs || stoodStill, `before the fault: ${text}`);
    t.true(askedMs <= healedMs + slackMs, `long after the fault: ${text}`);
  }
  const counters = new Map<string, number>();
  for (const key of (await redis.command('KEYS', 'd_k_*')) as string[]) {
    counters.set(key.split('_')[2] ?? '', Number(await redis.command('GET', key)));
  }
  for (const [value, sent] of asked) {
    const good = decisions.filter(({ failure, ...of }) => of.value === value && !failure).length;
    const counter = counters.get(value) ?? 0;
    t.true(good <= counter && counter <= sent, `${value}: ${good} OK, ${counter}, ${sent} sent`);
  }
  const { lines } = worker.log;
  t.log(
    `${decisions.length} decisions, ${failed.length} failed, the longest ${Math.round(longestMs)} ms; ` +
      `the first OK ${Math.round(recoveredMs)} ms after the repair`,
  );
  return { failed, lines, url };
}

for (const fault of [
  { kind: 'latency', ms: 100 },
  { kind: 'drip', bytes: 8, everyMs: 5 },
] as const) {
  test.serial(`Redis answers late (${fault.kind}): no decision fails`, async (t) => {
    const { failed, lines } = await goThrough(t, fault);
    t.deepEqual(failed, []);
    t.deepEqual(
      lines.filter((line) => line.startsWith('error')),
      [],
    );
  });
}

for (const kind of ['stall', 'reset', 'half-close', 'cut'] as const) {
  test.serial(
    `the way to Redis is broken (${kind}): decisions fail in time, and only then`,
    async (t) => {
      const { lines, url } = await goThrough(t, { kind });
      const errors = lines.filter((line) => line.startsWith('error'));
      t.true(errors.length >= 1 && errors.length <= 6, errors.join('\n'));
      t.true(
        errors.every((line) => line.includes(`key-value store ${url}: `)),
        errors.join('\n'),
      );
      const back = `notice key-value store ${url}: answers again after `;
      await eventually('it is said', () => lines.some((line) => line.startsWith(back)));
    },
  );
}
