// The debug lines of whole decisions, over real rules and counters in process.
import test from 'ava';
import type { Log } from '../../shared/log.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import { OpenDecision } from '../../test/support/decision-worker.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createMemoryStore } from '../counters/memory-store.ts';
import { createRegistry } from '../metrics/registry.ts';
import { createDecisionTrail } from './decision-trail.ts';
import type { RateLimitRequest } from './message.ts';
import { createOverLimitCache } from './over-limit-cache.ts';
import { createShouldRateLimit } from './should-rate-limit.ts';
import { createUnmatchedSampler } from './unmatched-sampler.ts';

const yaml = `
domain: d
descriptors:
  - key: a
    rate_limit: {unit: minute, requests_per_unit: 5, name: base}
  - key: b
    rate_limit: {unit: hour, requests_per_unit: 1, replaces: [{name: base}]}
  - key: free
    rate_limit: {unlimited: true}
  - key: path
    value: /*
    rate_limit: {unit: hour, requests_per_unit: 5}
    descriptors:
      - key: user
        value: 1
        rate_limit: {unit: hour, requests_per_unit: 5}
  - key: watched
    shadow_mode: true
    rate_limit: {unit: minute, requests_per_unit: 1}
  - key: shadow
    shadow_mode: true
    quota_mode: true
    rate_limit: {unit: second, requests_per_unit: 0}
`;
const start = Date.parse('2026-11-21T12:00:15Z');

function createTrailed() {
  const { document, problems } = parseRuleDocument(yaml, 'test.yaml');
  if (!document) throw new Error(problems.map(({ message }) => message).join('\n'));
  const built = buildRuleSet([document], { mergeDomains: false, sanitizeMetricDots: false });
  if (!built.ok) throw new Error(built.problems.map(({ message }) => message).join('\n'));
  const clock = createManualClock(start);
  const log = createRecordedLog();
  const metrics = createRegistry({ runtimeNamesMax: 100, log });
  const shouldRateLimit = createShouldRateLimit({
    rules: { current: built.ruleSet },
    store: createMemoryStore({ clock, log }),
    overLimitCache: createOverLimitCache(100_000, metrics, clock),
    metrics,
    unmatched: createUnmatchedSampler(metrics, () => {}),
    clock,
    trail: createDecisionTrail(log),
    options: {
      weekResetDay: 4,
      calendarMonths: false,
      storeTimeoutMs: 1_000,
      cacheKeyPrefix: '',
      keepsLongKeys: false,
      nearLimitRatio: 0.8,
      shadowMode: false,
      quotaMode: false,
      stopIncrementWhenOver: 'false',
      sanitizeMetricDots: false,
      dynamicMetadata: false,
      headers: { response: undefined, request: undefined, perUnit: undefined },
    },
  });
  return async (domain: string, ...descriptors: string[]): Promise<string[]> => {
    log.lines.length = 0;
    const request: RateLimitRequest = {
      domain,
      hitsAddend: 0,
      descriptors: descriptors.map((text) => ({
        entries: text.split(',').map((pair) => {
          const [key = '', value = ''] = pair.split('=');
          return { key, value };
        }),
        limit: undefined,
        hitsAddend: undefined,
        isNegativeHits: false,
      })),
    };
    const now = clock.monotonicMs();
    await new Promise((settle) => shouldRateLimit(new OpenDecision(request, now, settle)));
    return log.lines.map((line) => line.replace(/^debug /, ''));
  };
}

test('a counted decision is told step by step', async (t) => {
  const ask = createTrailed();
  t.deepEqual(await ask('d', 'a=1', 'x=1,y=2'), [
    'ShouldRateLimit: domain:"d" descriptors:{entries:{key:"a" value:"1"}} descriptors:{entries:{key:"x" value:"1"} entries:{key:"y" value:"2"}}',
    'got descriptor: (a=1)',
    'starting get limit lookup',
    'looking up key: a_1',
    'looking up key: a',
    'found rate limit: a',
    'applying limit: 5 requests per MINUTE, shadow_mode: false, quota: false',
    'got descriptor: (x=1),(y=2)',
    'starting get limit lookup',
    'looking up key: x_1',
    'looking up key: x',
    'descriptor does not match any limit, no limits applied',
    'starting cache lookup',
    'looking up cache key: d_a_1_1795262400',
    'cache key: d_a_1_1795262400 current: 1 limit: 5',
    'returning normal response: overall_code:OK statuses:{code:OK current_limit:{name:"base" requests_per_unit:5 unit:MINUTE} limit_remaining:4 duration_until_reset:{seconds:45}} statuses:{code:OK limit_remaining:0}',
  ]);
});

test('the names that are looked up are told until one is found, level by level', async (t) => {
  const ask = createTrailed();
  const lookup = async (descriptor: string) =>
    (await ask('d', descriptor))
      .slice(3)
      .filter((line) => /^(looking up key|found|req)/.test(line));
  const tooDeep =
    "request depth does not match config depth, there are more entries in the request's descriptor";
  t.deepEqual(await lookup('a=1,b=2'), [
    'looking up key: a_1',
    'looking up key: a',
    'found rate limit: a',
    tooDeep,
  ]);
  t.deepEqual(await lookup('path=/x'), ['looking up key: path_/x', 'found rate limit: path_/x']);
  t.deepEqual(await lookup('path=/x,user=1'), [
    'looking up key: path_/x',
    'found rate limit: path_/x',
    tooDeep,
    'looking up key: user_1',
    'found rate limit: user_1',
  ]);
  t.deepEqual(await lookup('path=/x,user=2'), [
    'looking up key: path_/x',
    'found rate limit: path_/x',
    tooDeep,
    'looking up key: user_2',
    'looking up key: user',
  ]);
});

test('the trail says why a hit is not counted', async (t) => {
  const ask = createTrailed();
  const unlimited = await ask('d', 'free=1');
  t.true(unlimited.includes('descriptor is unlimited, not passing to the cache'));
  t.false(unlimited.includes('starting cache lookup'));
  const unknown = await ask('other', 'a=1');
  t.deepEqual(unknown.slice(1, 4), [
    'got descriptor: (a=1)',
    'starting get limit lookup',
    "unknown domain 'other'",
  ]);
  const replaced = await ask('d', 'a=1', 'b=1');
  t.true(replaced.includes('replacing base'));
  t.deepEqual(
    replaced.filter((line) => line.startsWith('looking up cache key')),
    ['looking up cache key: d_b_1_1795262400'],
  );
});

test('a counter that is known to be over its limit is not looked up', async (t) => {
  const ask = createTrailed();
  await ask('d', 'b=1');
  await ask('d', 'b=1');
  const lines = await ask('d', 'b=1');
  t.true(lines.includes('cache key is over the limit: d_b_1_1795262400'));
  t.false(lines.some((line) => line.startsWith('looking up cache key')));
});

test('a rule in shadow mode says so when it is over, counted or known', async (t) => {
  const ask = createTrailed();
  for (let time = 1; time <= 2; time++) {
    const lines = await ask('d', 'shadow=1');
    t.true(lines.includes('Limit with key d.shadow, is in shadow_mode'));
    t.true(lines.includes('applying limit: 0 requests per SECOND, shadow_mode: true, quota: true'));
  }
});

test('a rule in shadow mode says nothing of it up to its limit', async (t) => {
  const ask = createTrailed();
  const said = (lines: readonly string[]) =>
    lines.some((line) => line.includes('is in shadow_mode'));
  t.false(said(await ask('d', 'watched=1')));
  t.true(said(await ask('d', 'watched=1')));
});

test('a log without debug lines has no trail, so that nothing is made for it', (t) => {
  const log: Log = { ...createRecordedLog(), isDebug: false };
  t.is(createDecisionTrail(log), undefined);
});

test('a request of any size makes a line of bounded size', async (t) => {
  const ask = createTrailed();
  const many = Array.from({ length: 5_000 }, (_, index) => `x=${index}`);
  const [line = ''] = await ask('d', ...many);
  t.true(line.length < 40_000);
  t.regex(line, /\.\.\. \(\d+ more\)$/);
  const [long = ''] = await ask('d', `x=${'v'.repeat(1_000_000)}`);
  t.true(long.length < 40_000);
});
