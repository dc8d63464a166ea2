import test from 'ava';
import type { ReportMessage, TotalsMessage } from '../../shared/wire/fleet-messages.ts';
import { createTally } from './tally.ts';
import { toTotals } from './worker-figures.ts';

const none: TotalsMessage = {
  decisions: 0,
  overLimit: 0,
  errors: 0,
  nearLimitHits: 0,
  noMatch: 0,
  durations: [],
  withoutStore: 0,
  storeDurations: [],
};
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
  t.deepEqual(tally.counted, { ...counted, decisions: 0, overLimit: 0, errors: 0, noMatch: 0 });
  report({ decisions: 9_100, overLimit: 8_010, errors: 505, noMatch: 9 });
  t.deepEqual(tally.counted, { ...counted, decisions: 95, overLimit: 10, errors: 5, noMatch: 2 });
  report({ decisions: 9_200, overLimit: 8_010, errors: 505, noMatch: 10 });
  t.deepEqual(tally.counted, { ...counted, decisions: 195, overLimit: 10, errors: 5, noMatch: 3 });
  t.is(tally.problem, undefined);
});

test('a report during which the version changed counts for none, and begins another series', (t) => {
  const { tally, report } = setUp();
  report({});
  report({ decisions: 9_100 });
  report({ decisions: 9_200 }, { version: 'v2' });
  const counted = { nodeId: 'w', series: 's-2', version: 'v2' };
  t.deepEqual(tally.counted, { ...counted, decisions: 0, overLimit: 0, errors: 0, noMatch: 0 });
  report({ decisions: 9_300 }, { version: 'v2' });
  t.deepEqual(tally.counted, { ...counted, decisions: 100, overLimit: 0, errors: 0, noMatch: 0 });
  report({ decisions: 9_400 });
  t.like(tally.counted, { series: 's-3', version: 'v1', decisions: 0 });
});

const impossible: readonly (readonly [
  string,
  Partial<TotalsMessage>,
  Partial<ReportMessage> | undefined,
  string,
])[] = [
  ['fewer decisions', { decisions: 8_999 }, {}, "its total 'decisions' fell from 9000 to 8999"],
  ['fewer errors', { errors: 1 }, {}, "its total 'errors' fell from 500 to 1"],
  ['fewer over limit', { overLimit: 1 }, {}, "its total 'over limit' fell from 8000 to 1"],
  ['fewer without a rule', { noMatch: 1 }, {}, "its total 'without a rule' fell from 7 to 1"],
  ['no totals', {}, { totals: null }, "its total 'decisions' fell from 9000 to 0"],
  [
    'more answers than decisions',
    { decisions: 9_010, overLimit: 8_006, errors: 505 },
    {},
    'it reports 6 over limit and 5 errors in 10 decisions',
  ],
  [
    'more decisions than there can be',
    { decisions: 10_009_001 },
    {},
    'it reports 10000001 decisions in 5.0 s',
  ],
  ['negative errors', { errors: -1 }, {}, 'it reports -1 as its errors'],
  [
    'endless decisions',
    { decisions: Number.POSITIVE_INFINITY },
    {},
    'it reports Infinity as its decisions',
  ],
  ['no number of seconds', {}, { seconds: Number.NaN }, 'it reports NaN as its seconds'],
  ['negative seconds', {}, { seconds: -5 }, 'it reports -5 as its seconds'],
  ['negative durations', { durations: [1, -1] }, {}, 'it reports -1 as its durations'],
  [
    'no number of an offset',
    {},
    { store: { kind: 'redis', serversAway: 0, clockOffsetMs: Number.NaN } },
    "it reports NaN as its clock's offset",
  ],
];
for (const [what, totals, given, problem] of impossible) {
  test(`figures with ${what} cannot be true, and no later ones change that`, (t) => {
    const { tally, report } = setUp();
    report({});
    report(totals, given);
    t.is(tally.problem, problem);
    report({ decisions: 20_000_000, overLimit: 9_000 });
    t.is(tally.problem, problem);
  });
}

test('reports that come in one go are judged as if a second had passed, and a busy worker is believed', (t) => {
  const { tally, report } = setUp();
  report({});
  report({ decisions: 2_009_000 }, {}, 0);
  report({ decisions: 2_009_000 + 10_000_000 });
  t.is(tally.problem, undefined);
  report({ decisions: 2_009_000 + 10_000_000 + 2_000_001 }, {}, 10);
  t.is(tally.problem, 'it reports 2000001 decisions in 1.0 s');
});

test('a first report says nothing of what passed, but has to be of numbers', (t) => {
  const first = setUp();
  first.report({ decisions: 2 ** 53, overLimit: 0 });
  t.is(first.tally.problem, undefined);
  const second = setUp();
  second.report({ decisions: Number.NaN });
  t.is(second.tally.problem, 'it reports NaN as its decisions');
});
