import test from 'ava';
import type { ReportMessage, TotalsMessage } from '../../../shared/wire/fleet-messages.ts';
import { Tally } from './tally.ts';
import { toTotals } from './worker-figures.ts';

const none = toTotals(undefined);
/** The counts of a worker that has been running for long. */
const lifetime = { ...none, decisions: 9_000, overLimit: 8_000, errors: 500, noMatch: 7 };

function setUp() {
  let series = 0;
  const tally = new Tally({
    ...{ nodeId: 'w', newSeries: () => `s-${++series}`, mostRules: () => 100 },
    toOwned: (name) => name,
  });
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
    tally.add(message, atMs);
  }
  return { tally, report };
}

test('only the difference between two reports counts, without the failed requests', (t) => {
  const { tally, report } = setUp();
  t.is(tally.counted, undefined);
  report({});
  t.like(tally.counted, { nodeId: 'w', series: 's-1', version: 'v1' });
  t.like(tally.counted?.now, { decisions: 0, overLimit: 0, errors: 0, noMatch: 0 });
  report({ decisions: 9_100, overLimit: 8_010, errors: 505, noMatch: 9 });
  t.like(tally.counted?.now, { decisions: 95, overLimit: 10, errors: 5, noMatch: 2 });
  report({ decisions: 9_200, overLimit: 8_010, errors: 505, noMatch: 10 });
  t.is(tally.counted?.series, 's-1');
  t.like(tally.counted?.now, { decisions: 195, overLimit: 10, errors: 5, noMatch: 3 });
});

test('a report during which the version changed counts for none, and begins another series', (t) => {
  const { tally, report } = setUp();
  report({});
  report({ decisions: 9_100 });
  report({ decisions: 9_200 }, { version: 'v2' });
  t.like(tally.counted, { nodeId: 'w', series: 's-2', version: 'v2' });
  t.like(tally.counted?.now, { decisions: 0, overLimit: 0, errors: 0, noMatch: 0 });
  report({ decisions: 9_300 }, { version: 'v2' });
  t.is(tally.counted?.series, 's-2');
  t.like(tally.counted?.now, { decisions: 100, overLimit: 0, errors: 0, noMatch: 0 });
  report({ decisions: 9_400 });
  t.like(tally.counted, { series: 's-3', version: 'v1' });
  t.is(tally.counted?.now.decisions, 0);
});

test('a total that falls counts for none, and neither do more failures than requests', (t) => {
  const { tally, report } = setUp();
  report({});
  report({ decisions: 8_000, errors: 9_000, overLimit: 1 });
  const none = { decisions: 0, overLimit: 0, errors: 8_500, noMatch: 0 };
  t.is(tally.counted?.series, 's-1');
  t.like(tally.counted?.now, none);
  report({ decisions: 8_100, errors: 9_000, overLimit: 2 });
  t.like(tally.counted?.now, { ...none, decisions: 100, overLimit: 1 });
});

const rule = (name: string, hits: number, overLimit = 0) => ({
  ...{ rule: name, hits, overLimit, nearLimit: 0 },
});

test('hits are summed by rule, of as many as may be kept, the largest of each report', (t) => {
  const { tally, report } = setUp();
  report({}, { rules: [rule('shop.a', 1_000)] });
  t.is(tally.counted?.now.rules.size, 0, 'of before its first report');
  report({}, { rules: [rule('shop.a', 5, 1), rule('shop.b_c.d', 7), rule('api.example.x', 1)] });
  report(
    {},
    { rules: [rule('shop.a', 1, 1), rule('bare', Number.NaN), rule('x'.repeat(2_000), 1)] },
  );
  t.deepEqual(Object.fromEntries(tally.counted?.now.rules ?? []), {
    'shop.a': { hits: 6, overLimit: 2 },
    'shop.b_c.d': { hits: 7, overLimit: 0 },
    'api.example.x': { hits: 1, overLimit: 0 },
    bare: { hits: 0, overLimit: 0 },
  });
  report({}, { rules: Array.from({ length: 200 }, (_, at) => rule(`d${at}.a`, at)) });
  report({}, { rules: [rule('shop.a', 1), rule('d199.a', 1)] });
  t.is(tally.counted?.now.rules.size, 100);
  t.is(tally.counted?.now.rules.get('shop.a')?.hits, 7);
  t.is(tally.counted?.now.rules.get('d199.a')?.hits, 200, 'the largest are kept');
});

test('failures are summed by domain, of as many as may be kept, as far as the worker reports them', (t) => {
  const { tally, report } = setUp();
  const failures = (domain: string, errors: number, noMatch: number) => ({
    failures: { domains: [{ domain, errors, noMatch }] },
  });
  report({});
  report({}, { rules: [rule('shop.a', 5)] });
  t.is(tally.counted?.now.failures, undefined);
  report({}, failures('mail.example', 1, 2));
  report({}, failures('mail.example', 1, -7));
  const known = () => Object.fromEntries(tally.counted?.now.failures ?? []);
  t.deepEqual(known(), { 'mail.example': { errors: 2, noMatch: 2 } });
  for (let at = 0; at < 200; at++) report({}, failures(`d${at}`, 1, 0));
  t.is(Object.keys(known()).length, 100);
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
  const spans = () => {
    const all = [tally.counted, tally.counted?.before];
    return all.map((span) => span && [span.older.decisions, span.now.decisions]);
  };
  t.deepEqual(spans(), [[0, 50], undefined]);
  pass(25, 'v1', 100);
  t.deepEqual(spans(), [[550, 2_550], undefined]);
  pass(1, 'v2', 100);
  t.deepEqual(spans(), [
    [0, 0],
    [550, 2_550],
  ]);
  t.is(tally.counted?.before?.version, 'v1');
  t.is(tally.counted?.before?.older.rules.get('shop.a')?.hits, 550);
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
