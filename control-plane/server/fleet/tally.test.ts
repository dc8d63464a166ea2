import test from 'ava';
import type { ReportMessage, TotalsMessage } from '../../../shared/wire/fleet-messages.ts';
import { createTally } from './tally.ts';
import { toTotals } from './worker-figures.ts';

const none = toTotals(undefined);
/** As it is in the start of a worker that has been up for long. */
const lifetime = { ...none, decisions: 9_000, overLimit: 8_000, errors: 500, noMatch: 7 };

function setUp() {
  let series = 0;
  const tally = createTally({ nodeId: 'w', newSeries: () => `s-${++series}` });
  let atMs = 0;
  function report(
    more: Partial<TotalsMessage>,
    given: Partial<ReportMessage> = {},
    passedMs = 5_000,
  ): void {
    atMs += passedMs;
    const totals = { ...lifetime, ...more };
    const message = {
      version: 'v1',
      totals,
      seconds: 5,
      rules: [],
      otherRuleCount: 0,
      unmatched: [],
      ...given,
    };
    tally.take(message, toTotals(message.totals), message.version, atMs);
  }
  return { tally, report };
}

test('only the difference between two reports counts, without the failed requests', (t) => {
  const { tally, report } = setUp();
  t.is(tally.counted, undefined);
  report({});
  const counted = { nodeId: 'w', series: 's-1', version: 'v1' };
  t.like(tally.counted, { ...counted, decisions: 0, overLimit: 0, errors: 0, noMatch: 0 });
  report({ decisions: 9_100, overLimit: 8_010, errors: 505, noMatch: 9 });
  t.like(tally.counted, { ...counted, decisions: 95, overLimit: 10, errors: 5, noMatch: 2 });
  report({ decisions: 9_200, overLimit: 8_010, errors: 505, noMatch: 10 });
  t.like(tally.counted, { ...counted, decisions: 195, overLimit: 10, errors: 5, noMatch: 3 });
});

test('a report during which the version changed counts for none, and begins another series', (t) => {
  const { tally, report } = setUp();
  report({});
  report({ decisions: 9_100 });
  report({ decisions: 9_200 }, { version: 'v2' });
  const counted = { nodeId: 'w', series: 's-2', version: 'v2' };
  t.like(tally.counted, { ...counted, decisions: 0, overLimit: 0, errors: 0, noMatch: 0 });
  report({ decisions: 9_300 }, { version: 'v2' });
  t.like(tally.counted, { ...counted, decisions: 100, overLimit: 0, errors: 0, noMatch: 0 });
  report({ decisions: 9_400 });
  t.like(tally.counted, { series: 's-3', version: 'v1', decisions: 0 });
});

test('a total that falls counts for none, and neither do more failures than requests', (t) => {
  const { tally, report } = setUp();
  report({});
  report({ decisions: 8_000, errors: 9_000, overLimit: 1 });
  const none = { decisions: 0, overLimit: 0, errors: 8_500, noMatch: 0 };
  t.like(tally.counted, { series: 's-1', ...none });
  report({ decisions: 8_100, errors: 9_000, overLimit: 2 });
  t.like(tally.counted, { ...none, decisions: 100, overLimit: 1 });
});

const rule = (name: string, hits: number, overLimit = 0) => ({
  ...{ rule: name, hits, overLimit, nearLimit: 0 },
});

test('hits are summed by domain, of the first hundred domains', (t) => {
  const { tally, report } = setUp();
  report({}, { rules: [rule('shop.a', 1_000)] });
  t.is(tally.counted?.domains.size, 0, 'of before its first report');
  report({}, { rules: [rule('shop.a', 5, 1), rule('shop.b_c.d', 7), rule('api.example.x', 1)] });
  report({}, { rules: [rule('shop.a', 1, 1), rule('bare', Number.NaN)] });
  t.deepEqual(Object.fromEntries(tally.counted?.domains ?? []), {
    shop: { hits: 13, overLimit: 2 },
    api: { hits: 1, overLimit: 0 },
    bare: { hits: 0, overLimit: 0 },
  });
  report({}, { rules: Array.from({ length: 200 }, (_, at) => rule(`d${at}.a`, 1)) });
  t.is(tally.counted?.domains.size, 100);
});

test('failures are summed by domain, as far as the worker reports them', (t) => {
  const { tally, report } = setUp();
  const failures = (domain: string, errors: number, noMatch: number) => ({
    failures: { domains: [{ domain, errors, noMatch }] },
  });
  report({});
  report({}, { rules: [rule('shop.a', 5)], ...failures('mail.example', 1, 2) });
  report({}, { rules: [rule('mail.example.a', 3)], ...failures('mail.example', 1, -7) });
  t.deepEqual(Object.fromEntries(tally.counted?.domains ?? []), {
    shop: { hits: 5, overLimit: 0, errors: 0, noMatch: 0 },
    mail: { hits: 3, overLimit: 0, errors: 2, noMatch: 2 },
  });
  report(
    {},
    {
      failures: {
        domains: Array.from({ length: 200 }, (_, at) => ({
          domain: `d${at}`,
          errors: 1,
          noMatch: 0,
        })),
      },
    },
  );
  t.is(tally.counted?.domains.size, 100);
});

test('the last ten to twenty minutes of a version are kept when another one follows', (t) => {
  const { tally, report } = setUp();
  let decisions = 9_000;
  const pass = (count: number, version: string, rate: number) => {
    for (let at = 0; at < count; at++) {
      decisions += rate;
      report({ decisions }, { version, rules: [rule('shop.a', rate)] }, 60_000);
    }
  };
  pass(1, 'v1', 0);
  pass(5, 'v1', 10);
  t.like(tally.counted, { decisions: 50, before: undefined });
  t.is(tally.counted?.recent.decisions, 50);
  pass(25, 'v1', 100);
  t.is(tally.counted?.decisions, 2_550);
  t.is(tally.counted?.recent.decisions, 2_000);
  pass(1, 'v2', 100);
  t.is(tally.counted?.before?.version, 'v1');
  t.is(tally.counted?.before?.figures.decisions, 2_000);
  t.deepEqual(tally.counted?.before?.figures.domains.get('shop'), { hits: 2_000, overLimit: 0 });
  t.is(tally.counted?.recent.decisions, 0);
});

test('a store that is away is named until a minute after', (t) => {
  const { tally, report } = setUp();
  const away = { kind: 'redis', serversAway: 1, clockOffsetMs: 0, unreachableSeconds: 0 };
  const fine = { ...away, serversAway: 0 };
  report({}, { store: fine });
  t.is(tally.counted?.storeAway, undefined);
  report({}, { store: { ...fine, unreachableSeconds: 3 } });
  t.is(tally.counted?.storeAway, 'redis');
  report({}, { store: fine }, 59_000);
  t.is(tally.counted?.storeAway, 'redis');
  report({}, { store: fine }, 1_000);
  t.is(tally.counted?.storeAway, undefined);
  report({}, { store: away });
  t.is(tally.counted?.storeAway, 'redis');
});
