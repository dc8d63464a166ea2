// Tests settings of decisions, from the environment to the answer.
import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { startWorker } from '../../support/worker-in-process.ts';

const rules = `
domain: d
descriptors:
  - {key: monthly, rate_limit: {unit: month, requests_per_unit: 2}}
  - {key: weekly, rate_limit: {unit: week, requests_per_unit: 2}}
  - {key: hourly, rate_limit: {unit: hour, requests_per_unit: 100}}
`;
const memory = { BACKEND_TYPE: 'memory' };
/** No window ends during a test. */
const stoppedClock = { ...systemClock, wallMs: () => Date.UTC(2026, 1, 10, 12, 59) };

test('QUOTA_MODE: a descriptor over its limit refuses only when no other is left', async (t) => {
  const over = ['monthly', 'monthly', 'monthly'];
  const clock = stoppedClock;
  const quotas = await startWorker(t, { env: { ...memory, QUOTA_MODE: 'true' }, rules, clock });
  t.is((await quotas.decide(...over)).status, 200);
  t.is((await quotas.decide('monthly', 'hourly')).status, 200);
  t.is((await quotas.decide('monthly')).status, 429);
  const limits = await startWorker(t, { env: memory, rules, clock });
  await limits.decide(...over);
  t.is((await limits.decide('monthly', 'hourly')).status, 429);
});

test('RESPONSE_DYNAMIC_METADATA: the answer includes the descriptors of the request', async (t) => {
  const env = { ...memory, RESPONSE_DYNAMIC_METADATA: 'true' };
  const { text } = await (await startWorker(t, { env, rules })).decide('hourly');
  t.like(JSON.parse(text), {
    dynamicMetadata: { domain: 'd', descriptors: [{ entries: ['hourly=v'] }] },
  });
});

test('NEAR_LIMIT_RATIO: above 1 no hits are near their limit, not even those that cross it', async (t) => {
  const worker = await startWorker(t, {
    env: { ...memory, NEAR_LIMIT_RATIO: '1.5' },
    rules,
    clock: stoppedClock,
  });
  const { http } = await worker.started;
  for (const hitsAddend of [99, 50]) {
    const descriptors = [{ entries: [{ key: 'hourly' }] }];
    const body = JSON.stringify({ domain: 'd', descriptors, hitsAddend });
    await fetch(`http://${http.text}/json`, { method: 'POST', body });
  }
  const stats = await worker.page('/stats');
  t.regex(stats, /d\.hourly\.over_limit: 49$/m);
  t.notRegex(stats, /near_limit: (?!0$)/m);
});

test('USE_CALENDAR_MONTH_RATE_LIMIT: a window ends with the calendar month', async (t) => {
  const clock = { ...systemClock, wallMs: () => Date.UTC(2026, 1, 10) };
  const env = { ...memory, USE_CALENDAR_MONTH_RATE_LIMIT: 'true' };
  const { text } = await (await startWorker(t, { env, rules, clock })).decide('monthly');
  t.is(JSON.parse(text).statuses[0].durationUntilReset, `${19 * 86_400}s`);
});

test('WEEK_RATE_LIMIT_RESET_DAY: a week ends with the day before', async (t) => {
  // A Tuesday.
  const clock = { ...systemClock, wallMs: () => Date.UTC(2026, 1, 10) };
  const env = { ...memory, WEEK_RATE_LIMIT_RESET_DAY: 'Monday' };
  const { text } = await (await startWorker(t, { env, rules, clock })).decide('weekly');
  t.is(JSON.parse(text).statuses[0].durationUntilReset, `${6 * 86_400}s`);
});

test('LIMIT_REQUEST_HEADERS_ENABLED: the request gets headers named by LIMIT_REQUEST_LIMIT_HEADER, LIMIT_REQUEST_REMAINING_HEADER and LIMIT_REQUEST_RESET_HEADER', async (t) => {
  const env = {
    ...memory,
    LIMIT_REQUEST_HEADERS_ENABLED: 'true',
    LIMIT_REQUEST_LIMIT_HEADER: 'X-Max',
    LIMIT_REQUEST_REMAINING_HEADER: 'X-Left',
    LIMIT_REQUEST_RESET_HEADER: 'X-Reset',
  };
  const worker = await startWorker(t, { env, rules, clock: stoppedClock });
  const { text } = await worker.decide('hourly');
  const { requestHeadersToAdd, responseHeadersToAdd } = JSON.parse(text);
  t.deepEqual(requestHeadersToAdd, [
    { key: 'X-Max', value: '100' },
    { key: 'X-Left', value: '99' },
    { key: 'X-Reset', value: '60' },
  ]);
  t.is(responseHeadersToAdd, undefined);
});

test('LIMIT_REQUEST_SHADOWED_HEADER: the upstream can distinguish the last request within a soft limit from the first above it', async (t) => {
  const soft = `
domain: d
descriptors:
  - {key: window, shadow_mode: true, rate_limit: {unit: month, requests_per_unit: 2}}
  - {key: bucket, shadow_mode: true, rate_limit: {unit: month, requests_per_unit: 2, algorithm: token_bucket}}
  - key: list
    shadow_mode: true
    rate_limits: [{unit: day, requests_per_unit: 2}, {unit: month, requests_per_unit: 9}]
  - {key: hard, rate_limit: {unit: month, requests_per_unit: 2}}
`;
  const run = async (env: Record<string, string>, ...keys: string[]) => {
    const worker = await startWorker(t, {
      env: { ...memory, ...env },
      rules: soft,
      clock: stoppedClock,
    });
    const marks: string[] = [];
    for (let time = 0; time < 4; time++) {
      const { status, text } = await worker.decide(...keys);
      const { requestHeadersToAdd: [header] = [] } = JSON.parse(text);
      marks.push(`${status} ${header === undefined ? '-' : `${header.key}=${header.value}`}`);
    }
    return marks;
  };
  const on = { LIMIT_REQUEST_SHADOWED_HEADER: 'x-soft-limited' };
  const marked = ['200 -', '200 -', '200 x-soft-limited=true', '200 x-soft-limited=true'];
  for (const key of ['window', 'bucket', 'list']) {
    t.deepEqual(await run(on, key), marked, key);
    t.deepEqual(await run({ ...on, LOCAL_CACHE_SIZE_IN_BYTES: '100000' }, key), marked, key);
  }
  t.deepEqual(await run({ ...on, SHADOW_MODE: 'true' }, 'hard'), marked);
  t.deepEqual(await run(on, 'hard', 'window'), ['200 -', '200 -', '429 -', '429 -']);
  t.deepEqual(await run({}, 'window'), ['200 -', '200 -', '200 -', '200 -']);
});

test('STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: with true the start names rules that refuse nothing, with enforced these disable no limit', async (t) => {
  const trial = `
domain: d
descriptors:
  - {key: trial, shadow_mode: true, rate_limit: {unit: month, requests_per_unit: 1}}
  - {key: real, rate_limit: {unit: month, requests_per_unit: 2}}
`;
  const run = async (value: string) => {
    const env = { ...memory, STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT: value };
    const worker = await startWorker(t, { env, rules: trial, clock: stoppedClock });
    const statuses: number[] = [];
    for (let time = 0; time < 4; time++)
      statuses.push((await worker.decide('trial', 'real')).status);
    const named = worker.log.lines.filter((line) => line.includes("'trial' has shadow_mode"));
    return [statuses, named.length];
  };
  t.deepEqual(await run('T'), [[200, 200, 200, 200], 1]);
  t.deepEqual(await run('enforced'), [[200, 200, 429, 429], 0]);
});
