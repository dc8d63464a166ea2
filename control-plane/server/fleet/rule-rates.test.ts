import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { RuleRates } from './rule-rates.ts';

const link = {};

test('rates of rules are those of the last minute of all workers, and rules without hits go', (t) => {
  const clock = createManualClock();
  const rates = new RuleRates(clock);
  const rule = (name: string, hits: number) => ({
    rule: name,
    hits,
    overLimit: hits / 2,
    nearLimit: 0,
  });
  rates.add(link, [rule('old', 600)], 5);
  for (let second = 5; second <= 60; second += 5) {
    clock.advance(5_000);
    rates.add(link, [rule('d.k', 50)], 5);
    rates.add(link, [rule('d.k', 50)], 5);
  }
  const [{ hitsPerSecond = 0, overLimitPerSecond = 0 } = {}] = rates
    .read()
    .filter(({ rule: name }) => name === 'd.k');
  t.is(hitsPerSecond, 20);
  t.is(overLimitPerSecond, hitsPerSecond / 2);
  clock.advance(30_000);
  t.deepEqual(
    rates.read().map(({ rule: name }) => name),
    ['d.k'],
  );
  clock.advance(3_600_000);
  t.deepEqual(rates.read(), []);
});

test('a report over a long time, of an absurd number or of too many rules is not taken for traffic of now', (t) => {
  const clock = createManualClock();
  const rates = new RuleRates(clock);
  const rule = (name: string) => ({ rule: name, hits: 1, overLimit: 0, nearLimit: 0 });
  rates.add(link, [rule('late')], 3_600);
  rates.add(link, [rule('late')], Number.NaN);
  t.deepEqual(rates.read(), []);
  for (let batch = 0; batch < 20; batch++) {
    rates.add(
      link,
      Array.from({ length: 2_500 }, (_, index) => rule(`${batch}.${index}`)),
      5,
    );
  }
  t.is(rates.read().length, 20_000);
});

test('under constant load all slots of a rule are alike, whenever the reports come', (t) => {
  const clock = createManualClock();
  const rates = new RuleRates(clock);
  for (let index = 0; index < 20; index++) {
    const seconds = [4.8, 5.4, 4.7, 5.2, 4.9][index % 5] ?? 0;
    clock.advance(seconds * 1000);
    const hits = 100 * seconds;
    rates.add(link, [{ rule: 'd.k', hits, overLimit: hits / 4, nearLimit: hits / 2 }], seconds);
  }
  const [series] = rates.readSeries('d', 'minute').rules;
  const all = (value: number) => Array.from({ length: 12 }, () => value);
  t.deepEqual(series?.hits.map(Math.round), all(100));
  t.deepEqual(series?.overLimit.map(Math.round), all(25));
  t.deepEqual(series?.nearLimit.map(Math.round), all(50));
});

test('a control plane that was started lately reports the rates since then, and not those of a minute', (t) => {
  const clock = createManualClock();
  const rates = new RuleRates(clock);
  for (let second = 5; second <= 30; second += 5) {
    clock.advance(5_000);
    rates.add(link, [{ rule: 'd.k', hits: 50, overLimit: 0, nearLimit: 0 }], 5);
  }
  t.deepEqual(rates.readSeries('d', 'minute').rules[0]?.hits, [10, 10, 10, 10]);
  t.is(rates.read()[0]?.hitsPerSecond, 10);
});

test('a slot of a rule is shown when no report that is in time can add to it', (t) => {
  const clock = createManualClock();
  const rates = new RuleRates(clock);
  const shown = () => rates.readSeries('d', 'minute').rules[0]?.hits.filter((hits) => hits > 0);
  clock.advance(10_000);
  rates.add(link, [{ rule: 'd.k', hits: 50, overLimit: 0, nearLimit: 0 }], 5);
  t.deepEqual(shown(), []);
  clock.advance(4_999);
  t.deepEqual(shown(), []);
  clock.advance(1);
  t.deepEqual(shown(), [10]);
});

test('numbers of workers that no counter can have do not spoil the sums', (t) => {
  const clock = createManualClock();
  const rates = new RuleRates(clock);
  for (const hits of [1e300, 1e300, Number.POSITIVE_INFINITY, -5, Number.NaN])
    rates.add(link, [{ rule: 'd.k', hits, overLimit: hits, nearLimit: hits }], 5);
  clock.advance(10_000);
  t.true(Number.isFinite(rates.read()[0]?.hitsPerSecond));
  t.true(rates.readSeries('d', 'minute').rules[0]?.hits.every(Number.isFinite));
});

test('a quarter of an hour of a rule is reported by the minute, also after its hits have ended', (t) => {
  const clock = createManualClock();
  const rates = new RuleRates(clock);
  for (let second = 5; second <= 1_200; second += 5) {
    clock.advance(5_000);
    const hits = second <= 900 ? 50 : 0;
    if (hits > 0) rates.add(link, [{ rule: 'd.k', hits, overLimit: 5, nearLimit: 0 }], 5);
  }
  clock.advance(15_000);
  const [{ hits = [], overLimit = [] } = {}] = rates.readSeries('d', 'quarter').rules;
  t.is(hits.length, 15);
  t.deepEqual([hits[0], hits.at(-1)], [10, 0]);
  t.is(overLimit[0], 1);
  t.deepEqual(rates.readSeries('d', 'minute').rules, []);
  t.deepEqual(rates.read(), []);
  clock.advance(1_200_000);
  t.deepEqual(rates.readSeries('d', 'quarter').rules, []);
});
