import test from 'ava';
import { fromText, LimitedSum, toLimitedList, toLimitedPeriod } from './limited-values.ts';

const value = (name: string, count: number, error = 0) => ({
  domain: 'd',
  rule: 'd.k',
  entries: [{ key: 'k', value: name }],
  count,
  error,
});

const period = (
  periodStart: number,
  unlistedAtMost: number,
  ...values: ReturnType<typeof value>[]
) => toLimitedPeriod({ periodStart, seconds: 60, values, unlistedAtMost }, 1_000_000);

const nameOf = ({ text }: { readonly text: string }) => fromText(text).entries[0]?.value;

test('counts of several workers are added, and so are the bounds of those that do not list a value', (t) => {
  const sum = new LimitedSum();
  sum.add(toLimitedList(period(1, 5, value('a', 100, 3), value('b', 10)), undefined));
  sum.add(toLimitedList(period(1, 2, value('a', 50)), undefined));
  sum.add(toLimitedList(period(1, 0), undefined));
  const { values, unlistedAtMost } = sum.read(10);
  t.is(unlistedAtMost, 7);
  t.deepEqual(
    values.map((each) => [nameOf(each), each.atLeast, each.atMost, each.workers]),
    [
      ['a', 147, 150, 2],
      ['b', 10, 12, 1],
    ],
  );
  // Hits of `b`, which the second worker may have omitted.
  t.like(sum.read(1), { unlistedAtMost: 12 });
});

test('a value that a worker lists twice has the sum of both, and its bounds once', (t) => {
  const sum = new LimitedSum();
  sum.add(toLimitedList(period(1, 100, value('a', 100), value('a', 50)), undefined));
  t.like(sum.read(1), { values: [{ atLeast: 150, atMost: 150, workers: 1 }] });
});

test('the period before is part of the count, and shows whether it grows', (t) => {
  const { values } = toLimitedList(
    period(61, 0, value('a', 240), value('new', 60)),
    period(1, 0, value('a', 60), value('gone', 6)),
  );
  t.deepEqual(
    values.map((each) => [nameOf(each), each.atMost, each.perSecond, each.perSecondBefore]),
    [
      ['a', 300, 2.5, 1],
      ['new', 60, 0.5, 0],
      ['gone', 6, 0.05, 0.1],
    ],
  );
});

test('the largest values of a report that fit are kept, cut, and with numbers in every case', (t) => {
  const long = { ...value('x'.repeat(1_000), Number.NaN, -5), domain: 'd'.repeat(5_000) };
  const many = Array.from({ length: 500 }, (_, index) => value(`${index}`, index));
  const retained = toLimitedPeriod(
    { periodStart: 1, seconds: -1, unlistedAtMost: 0, values: [long, ...many] },
    10_000,
  );
  t.true(retained.values.length > 20 && retained.values.length < 60, `${retained.values.length}`);
  t.is(retained.values[0]?.count, 98);
  t.is(retained.unlistedAtMost, 98 - retained.values.length);
  const [only] = toLimitedPeriod(
    { periodStart: 1, seconds: 1, unlistedAtMost: 0, values: [long] },
    10_000,
  ).values;
  const { domain, entries } = fromText(only?.text ?? '[]');
  t.is(domain.length, 128);
  t.is(entries[0]?.value.length, 128);
  t.deepEqual([only?.count, only?.error], [0, 0]);
});
