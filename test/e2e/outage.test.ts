// A worker under a steady load whose Redis goes away and comes back: errors only meanwhile, each in
// time, and decisions again soon after, without a restart.
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../support/eventually.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

/** Longer than a process of a busy machine stands still: no decision may fail by that alone. */
const timeoutMs = 5_000;
/** Beyond what the product promises, for a busy machine. */
const slackMs = 5_000;
const recoveryMs = 5_000;
const everyMs = 10;
const rules = `domain: d
descriptors:
  - key: k
    rate_limit: {unit: year, requests_per_unit: 1000000}
`;

interface Answer {
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly ok: boolean;
}

async function breakAndMend(
  t: ExecutionContext,
  breakIt: (redis: RedisServer) => Promise<void> | void,
  mendIt: (redis: RedisServer) => Promise<void> | void,
): Promise<void> {
  const redis = await startRedisServer(t);
  const worker = await startWorkerProcess(t, {
    env: { KVSTORE_URL: redis.url, KVSTORE_TIMEOUT: `${timeoutMs}ms` },
    rules: { 'd.yaml': rules },
  });

  const answers: Answer[] = [];
  const open = new Set<Promise<void>>();
  let sent = 0;
  const timer = setInterval(() => {
    const sentMs = performance.now();
    const value = `v${sent++ % 20}`;
    const asked = fetch(`http://127.0.0.1:${worker.ports.http}/json`, {
      method: 'POST',
      body: JSON.stringify({ domain: 'd', descriptors: [{ entries: [{ key: 'k', value }] }] }),
    })
      .then(async (answer) => {
        await answer.body?.cancel();
        answers.push({ sentMs, answeredMs: performance.now(), ok: answer.status === 200 });
      })
      .finally(() => open.delete(asked));
    open.add(asked);
  }, everyMs);
  t.teardown(() => clearInterval(timer));

  const count = (ok: boolean) => answers.filter((answer) => answer.ok === ok).length;
  await eventually('decisions', () => count(true) > 50);
  const brokenMs = performance.now();
  await breakIt(redis);
  await eventually('errors for a while', () => count(false) > 100);
  await mendIt(redis);
  const mendedMs = performance.now();
  await eventually(
    'decisions again, and still when the recovery has to be over',
    () => answers.filter(({ ok, sentMs }) => ok && sentMs > mendedMs + recoveryMs).length > 50,
  );
  clearInterval(timer);
  await Promise.all(open);

  const errors = answers.filter(({ ok }) => !ok);
  const firstOk = answers.find(({ ok, answeredMs }) => ok && answeredMs > mendedMs);
  const longest = Math.max(...errors.map(({ sentMs, answeredMs }) => answeredMs - sentMs));
  const recovered = (firstOk?.answeredMs ?? Number.POSITIVE_INFINITY) - mendedMs;
  t.log(`${errors.length} errors, the longest ${longest.toFixed(0)} ms`);
  t.log(`first OK ${recovered.toFixed(0)} ms after the server answered again`);
  t.true(longest <= timeoutMs + slackMs, `an error took ${longest} ms`);
  t.true(recovered <= recoveryMs, `the first OK came after ${recovered} ms`);
  t.is(
    errors.filter(({ answeredMs }) => answeredMs < brokenMs).length,
    0,
    'no error before the outage',
  );
  t.is(
    errors.filter(({ sentMs }) => sentMs > mendedMs + recoveryMs).length,
    0,
    'no error after the recovery',
  );
}

test.serial('Redis is killed and started again', (t) =>
  breakAndMend(
    t,
    (redis) => redis.kill(),
    (redis) => redis.restart(),
  ),
);

test.serial('Redis stands still and goes on', (t) =>
  breakAndMend(
    t,
    (redis) => redis.pause(),
    (redis) => redis.resume(),
  ),
);
