// The answers of a decision whose hits the store has not counted, in each failure mode, with a store
// that the test breaks.
import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import { OpenDecision } from '../../test/support/decision-worker.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import type { AnsweringMode } from '../counters/failure/failure-mode.ts';
import { createFailurePolicy } from '../counters/failure/failure-policy.ts';
import { createMemoryStore } from '../counters/memory-store.ts';
import type { CounterStore, CountRequest } from '../counters/store.ts';
import { createRegistry } from '../metrics/registry.ts';
import { codes, type RequestDescriptor } from './message.ts';
import { createOverLimitCache } from './over-limit-cache.ts';
import { createShouldRateLimit, type DecisionOutcome } from './should-rate-limit.ts';
import { createUnmatchedSampler } from './unmatched-sampler.ts';

const yaml = `domain: d
descriptors:
  - key: two
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: dead
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: shadow
    shadow_mode: true
    rate_limit: {unit: hour, requests_per_unit: 2}
  - key: free
    rate_limit: {unlimited: true}
  - key: block
    rate_limit: {unit: hour, requests_per_unit: 0}
`;

interface SetUpOptions {
  readonly shadowMode?: boolean;
  /** By default the store counts nothing. */
  readonly counts?: (key: string) => boolean;
}

function setUp(mode: AnsweringMode, { shadowMode = false, counts }: SetUpOptions = {}) {
  const clock = createManualClock(Date.parse('2026-11-22T10:00:00Z'));
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 100, log });
  const { document } = parseRuleDocument(yaml, 'd.yaml');
  if (document === undefined) throw new Error('the rules are wrong');
  const built = buildRuleSet([document], { mergeDomains: false, sanitizeMetricDots: false });
  if (!built.ok) throw new Error('the rules are wrong');
  const memory = createMemoryStore({ clock, log });
  let isAway = true;
  const store: CounterStore = {
    ...memory,
    count(request) {
      const works = (key: string) => !isAway || counts?.(key) === true;
      const hits = request.hits.filter(({ key }) => works(key));
      const error = new AppError('store', 'the store is away');
      const settle: CountRequest['settle'] = (inner) =>
        request.settle(hits.length < request.hits.length ? error : inner);
      if (hits.length === 0) setImmediate(settle, error);
      else memory.count({ ...request, hits, settle });
    },
  };
  const policy = createFailurePolicy({ mode, metrics, clock, log, outagesAreOver: () => !isAway });
  const shouldRateLimit = createShouldRateLimit({
    rules: { current: built.ruleSet },
    store,
    failurePolicy: policy,
    unmatched: createUnmatchedSampler(metrics, () => {}),
    overLimitCache: createOverLimitCache(1_000_000, metrics, clock),
    metrics,
    clock,
    options: {
      weekResetDay: 4,
      calendarMonths: false,
      storeTimeoutMs: 1_000,
      cacheKeyPrefix: '',
      keepsLongKeys: false,
      nearLimitRatio: 0.8,
      shadowMode,
      quotaMode: false,
      stopIncrementWhenOver: 'false',
      sanitizeMetricDots: false,
      dynamicMetadata: false,
      headers: { response: undefined, request: undefined, perUnit: undefined },
    },
  });
  const toDescriptor = (key: string, more: Partial<RequestDescriptor> = {}): RequestDescriptor => ({
    entries: [{ key, value: '' }],
    limit: undefined,
    hitsAddend: undefined,
    isNegativeHits: false,
    ...more,
  });
  const ask = (descriptors: readonly RequestDescriptor[]) =>
    new Promise<DecisionOutcome>((settle) =>
      shouldRateLimit(
        new OpenDecision({ domain: 'd', hitsAddend: 0, descriptors }, clock.monotonicMs(), settle),
      ),
    );
  return {
    policy,
    mend() {
      isAway = false;
      policy.storeIsBack();
    },
    stat: (name: string) => metrics.snapshot().get(`ratelimit.service.${name}`) ?? 0,
    askAll: async (...each: (readonly [key: string, hits: number | bigint])[]) =>
      show(await ask(each.map(([key, hitsAddend]) => toDescriptor(key, { hitsAddend })))),
    askWith: async (key: string, more: Partial<RequestDescriptor>) =>
      show(await ask([toDescriptor(key, more)])),
    ask: async (...keys: string[]) => show(await ask(keys.map((key) => toDescriptor(key)))),
  };
}

/** The overall code and, for each status, `OK` or `OVER` with what remains. */
function show(outcome: DecisionOutcome): string {
  if (!outcome.ok) return `failed: ${outcome.error.message}`;
  const { overallCode, statuses } = outcome.response;
  const name = (code: number) => (code === codes.ok ? 'OK' : 'OVER');
  return [
    `${name(overallCode)}:`,
    ...statuses.map(({ code, limitRemaining, currentLimit }) =>
      currentLimit === undefined ? name(code) : `${name(code)} ${limitRemaining}`,
    ),
  ].join(' ');
}

test('allow: OK with the limit, as though nothing had been counted; blocked stays blocked', async (t) => {
  const { ask, askWith, stat } = setUp('allow');
  for (let round = 0; round < 3; round++) t.is(await ask('two', 'free', 'none'), 'OK: OK 1 OK OK');
  t.is(await ask('block'), 'OVER: OVER 0');
  t.is(await askWith('two', { hitsAddend: 3 }), 'OVER: OVER 0');
  t.is(await askWith('two', { isNegativeHits: true }), 'OK: OK 2');
  t.is(stat('rate_limit.d.two.total_hits'), 6);
  for (const name of ['within_limit', 'near_limit', 'over_limit']) {
    t.is(stat(`rate_limit.d.two.${name}`), 0, name);
  }
  t.is(stat('call.should_rate_limit.redis_error'), 0);
});

test('deny: over the limit where a limit applies, and nowhere else', async (t) => {
  const { ask, askWith, stat } = setUp('deny');
  t.is(await ask('two', 'free', 'none'), 'OVER: OVER 0 OK OK');
  t.is(await ask('free', 'none'), 'OK: OK OK');
  t.is(await ask('shadow'), 'OK: OK 0');
  t.is(await askWith('two', { isNegativeHits: true }), 'OK: OK 0');
  t.is(stat('rate_limit.d.two.over_limit'), 0);
});

test('deny: the global shadow mode lets everything through', async (t) => {
  const { ask } = setUp('deny', { shadowMode: true });
  t.is(await ask('two'), 'OK: OVER 0');
});

test('local: counted here, and the statistics of the rule are what they say', async (t) => {
  const { ask, stat } = setUp('local');
  t.is(await ask('two'), 'OK: OK 1');
  t.is(await ask('two', 'two'), 'OVER: OK 0 OVER 0');
  t.is(stat('rate_limit.d.two.within_limit'), 2);
  t.is(stat('rate_limit.d.two.over_limit'), 1);
});

test('local: what was over the limit here is not so in the store', async (t) => {
  const { ask, mend } = setUp('local');
  for (let round = 0; round < 4; round++) await ask('two');
  mend();
  t.is(await ask('two'), 'OK: OK 1');
});

for (const [mode, expected] of [
  ['allow', 'OVER: OVER 0 OK 1'],
  ['deny', 'OVER: OVER 0 OVER 0'],
  ['local', 'OVER: OVER 0 OVER 0'],
] as const) {
  test(`${mode}: what another node has counted is judged by its answer`, async (t) => {
    const { ask } = setUp(mode, { counts: (key) => key.includes('two') });
    await ask('two', 'dead');
    await ask('two', 'dead');
    t.is(await ask('two', 'dead'), expected);
  });
}

test('deny: a counter that another node has looked at and found empty is judged by its answer', async (t) => {
  const { askAll } = setUp('deny', { counts: (key) => key.includes('two') });
  t.is(await askAll(['two', 0], ['dead', 0]), 'OVER: OK 2 OVER 0');
});

test('local: hits that no counter can hold are over the limit here as well', async (t) => {
  const { askAll, stat } = setUp('local');
  const most = 2n ** 63n - 1n;
  await askAll(['two', most]);
  t.is(await askAll(['two', most]), 'OVER: OVER 0');
  t.is(stat('call.should_rate_limit.redis_error'), 0);
});
