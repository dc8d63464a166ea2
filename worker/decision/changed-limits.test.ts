// Tests what limiters and lists answer and retain when limits, clocks and requests change. Complete answers are in
// decisions.test.ts, the arithmetic in test/contract/limiters.test.ts.
import test from 'ava';
import fc from 'fast-check';
import { limiterAlgorithms } from '../../shared/rules/limit-shape.ts';
import { ask, createWorker, summarize } from '../../test/support/decision-worker.ts';
import { codes } from './message.ts';

const withKey = (lines: string) => `
domain: d
descriptors:
  - key: k
${lines.replace(/^/gm, '    ')}
`;

test('limits added before or after a limit in a list, or replacing others, leave its counter unchanged', async (t) => {
  const hour = '{unit: hour, requests_per_unit: 9}';
  const others = [
    '{unit: second, requests_per_unit: 100}',
    '{unit: minute, requests_per_unit: 200, algorithm: sliding_window}',
  ];
  const lists = [
    `rate_limit: ${hour}`,
    `rate_limits: [${others[0]}, ${hour}]`,
    `rate_limits: [${hour}, ${others[1]}]`,
    `rate_limits: [${others.join(', ')}, ${hour}]`,
    `rate_limit: ${hour}`,
  ];
  const worker = createWorker(withKey(lists[0] ?? ''));
  for (const [index, limits] of lists.entries()) {
    worker.useRules(withKey(limits));
    t.is(summarize(await worker.decide(ask('k=x'))), `OK [OK ${8 - index}]`, limits);
  }
  const minutes = withKey(`rate_limits: [{unit: minute, requests_per_unit: 5}, ${hour}]`);
  worker.useRules(minutes);
  for (let time = 0; time < 2; time++) await worker.decide(ask('k=y'));
  worker.useRules(minutes.replace(`}, ${hour}`, `}, ${others[0]}, ${hour}`));
  t.is(summarize(await worker.decide(ask('k=y'))), 'OK [OK 2]', 'also one that has a tag');
});

test('a request refused by a list is admitted after its reset, not before, also if it used up another limit', async (t) => {
  const limits = fc.array(
    fc.record({
      unit: fc.constantFrom('second', 'minute'),
      requests_per_unit: fc.integer({ min: 1, max: 6 }),
      algorithm: fc.constantFrom('fixed_window', 'sliding_window', 'token_bucket'),
    }),
    { minLength: 2, maxLength: 4 },
  );
  const distinct = limits.filter(
    (list) => new Set(list.map((one) => one.unit + one.algorithm)).size === list.length,
  );
  const before = fc.array(fc.record({ waitMs: fc.nat(3_000), hits: fc.nat(3) }), { maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(
      distinct,
      before,
      fc.integer({ min: 1, max: 3 }),
      async (list, steps, hits) => {
        const worker = createWorker(withKey(`rate_limits: ${JSON.stringify(list)}`));
        const decide = async (hitsAddend: number) => {
          const outcome = await worker.decide(ask({ of: 'k=x', hitsAddend }));
          if (!outcome.ok) throw outcome.error;
          const { overallCode, statuses } = outcome.response;
          return { isOver: overallCode === codes.overLimit, reset: statuses[0]?.secondsUntilReset };
        };
        for (const step of steps) {
          worker.clock.advance(step.waitMs);
          await decide(step.hits);
        }
        const { isOver, reset } = await decide(hits);
        if (!isOver) return;
        if (reset === undefined) {
          if (list.every((one) => hits <= one.requests_per_unit)) throw new Error('no reset');
          return;
        }
        worker.clock.advance(reset * 1_000);
        if ((await decide(hits)).isOver) throw new Error(`refused after ${reset} s`);
      },
    ),
    { numRuns: 300 },
  );
  t.pass();
});

test('hits that can never be admitted have no reset, and the log names their rule once', async (t) => {
  const resetOf = async (limits: string, localCacheBytes = 0) => {
    const worker = createWorker(withKey(limits), { localCacheBytes });
    const resets: unknown[] = [];
    for (const hitsAddend of [1, 9, 9]) {
      const outcome = await worker.decide(ask({ of: 'k=x', hitsAddend }));
      if (outcome.ok) resets.push(outcome.response.statuses[0]?.secondsUntilReset);
    }
    return [resets.slice(1), worker.log.lines] as const;
  };
  const warning =
    'warning rule d.k: a request has 9 hits and the limit is 3, so it can never be admitted';
  for (const algorithm of limiterAlgorithms) {
    const limits = `rate_limit: {unit: hour, requests_per_unit: 3, algorithm: ${algorithm}}`;
    t.deepEqual(await resetOf(limits), [[undefined, undefined], [warning]]);
  }
  t.deepEqual(await resetOf('rate_limit: {unit: hour, unit_multiplier: 2, requests_per_unit: 3}'), [
    [undefined, undefined],
    [warning],
  ]);
  const [ofList] = await resetOf(
    'rate_limits: [{unit: hour, requests_per_unit: 3}, {unit: day, requests_per_unit: 90}]',
  );
  t.deepEqual(ofList, [undefined, undefined]);
  const [plain, lines] = await resetOf('rate_limit: {unit: hour, requests_per_unit: 3}');
  t.deepEqual([plain, lines], [[3_585, 3_585], [warning]], 'as the reference answers');
  const [, ofNothing] = await resetOf('rate_limit: {unit: hour, requests_per_unit: 0}');
  t.deepEqual(ofNothing, [], 'a limit of 0 refuses intentionally');
});

test('the largest bucket at the slowest rate is counted, and its reset fits in a response', async (t) => {
  const slow =
    'rate_limit: {unit: year, requests_per_unit: 1, algorithm: token_bucket, burst: 4294967295}';
  const worker = createWorker(withKey(slow));
  const outcome = await worker.decide(ask({ of: 'k=x', hitsAddend: 4_294_967_295 }));
  t.is(outcome.ok && outcome.response.statuses[0]?.secondsUntilReset, 315_576_000_000);
});
