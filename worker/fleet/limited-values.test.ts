import test from 'ava';
import { ask } from '../../test/support/decision-worker.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { pluck } from '../../test/support/pluck.ts';
import { createRandom } from '../../test/support/random.ts';
import type { RuleHit } from '../decision/hit.ts';
import { codes, type DescriptorStatus } from '../decision/message.ts';
import { LimitedValues } from './limited-values.ts';

const over = { code: codes.overLimit } as DescriptorStatus;
const ok = { code: codes.ok } as DescriptorStatus;

function toHit(descriptorIndex: number, metricKey = 'd.k'): RuleHit {
  return { descriptorIndex, match: { metricKey, metricKeyIsStatic: true } } as RuleHit;
}

/** The second of the next request: with one request in each second, all are counted one by one. */
let nextSecond = 1;

function refuse(limited: LimitedValues, ...values: string[]): void {
  limited.overLimit(
    ask(...values.map((value) => `k=${value}`)),
    values.map((_, index) => toHit(index)),
    values.map(() => over),
    nextSecond++,
  );
}

test('requests are counted once, and so is each of their descriptors over the limit', (t) => {
  const limited = new LimitedValues(createManualClock(), true);
  refuse(limited, 'a', 'b');
  refuse(limited, 'a');
  const entries = (value: string) => [{ key: 'k', value }];
  limited.overLimit(
    { ...ask('k=a', 'k=c'), hitsAddend: 9 },
    // A list of two limits, and a descriptor within its limit.
    [toHit(0), toHit(0), toHit(1)],
    [over, ok],
    nextSecond++,
  );
  t.is(limited.requests, 3);
  t.deepEqual(
    limited.drainPeriod().values.map(({ item, count }) => [item.entries, count]),
    [
      [entries('a'), 3],
      [entries('b'), 1],
    ],
  );
});

test('a period is reported once more when it ends, and another begins', (t) => {
  const clock = createManualClock();
  const limited = new LimitedValues(clock, true);
  refuse(limited, 'a');
  clock.advance(59_000);
  t.is(limited.drainPeriod().values.length, 1);
  clock.advance(2_000);
  const last = limited.drainPeriod();
  t.like(last, { seconds: 61, values: [{ count: 1 }] });
  const next = limited.drainPeriod();
  t.deepEqual(next.values, []);
  t.is(next.startMs, last.startMs + 61_000);
  t.is(limited.requests, 1);
});

test('a metric key with a long value takes no more memory than others', (t) => {
  const limited = new LimitedValues(createManualClock(), true);
  const request = { domain: 'd', hitsAddend: 0, descriptors: [] };
  const keys = ['a', 'b', 'a'].map((end) => `d.${'x'.repeat(60_000)}${end}`);
  for (const key of keys) limited.overLimit(request, [toHit(0, key)], [over], nextSecond++);
  const { values } = limited.drainPeriod();
  t.deepEqual(pluck(values, 'count'), [2, 1]);
  for (const { key } of values) t.true(key.length <= 1024, `${key.length}`);
});

test('long values are cut, and without values only requests are counted', (t) => {
  const limited = new LimitedValues(createManualClock(), true);
  refuse(limited, 'x'.repeat(1_000_000));
  refuse(limited, 'x'.repeat(2_000_000));
  const [value, ...more] = limited.drainPeriod().values;
  t.deepEqual(more, []);
  t.is(value?.count, 2);
  t.is(value?.item.entries[0]?.value, `${'x'.repeat(127)}…`);
  const none = new LimitedValues(createManualClock(), false);
  refuse(none, 'a');
  t.is(none.requests, 1);
  t.deepEqual(none.drainPeriod().values, []);
});

test('summed counts of several processes are within their bounds', (t) => {
  const clock = createManualClock();
  const random = createRandom(5);
  const primary = new LimitedValues(clock, true);
  const truth = new Map<string, number>();
  for (let round = 0; round < 10; round++) {
    for (let number = 0; number < 3; number++) {
      const own = new LimitedValues(clock, true);
      for (let index = 0; index < 2_000; index++) {
        const value = `${Math.floor(random.below(3_000) ** 2 / 3_000)}`;
        truth.set(value, (truth.get(value) ?? 0) + 1);
        refuse(own, value);
      }
      primary.addShare(own.drainShare());
    }
  }
  const { values, unlistedAtMost } = primary.drainPeriod();
  t.is(primary.requests, 60_000);
  const listed = new Set<string>();
  for (const { item, count, error } of values) {
    const value = item.entries[0]?.value ?? '';
    listed.add(value);
    const real = truth.get(value) ?? 0;
    if (count < real || count - error > real)
      t.fail(`${value}: ${real} is not in ${count} - ${error}`);
  }
  const others = [...truth].filter(([value]) => !listed.has(value)).map(([, real]) => real);
  t.true(Math.max(...others) <= unlistedAtMost);
  t.is(values.length, 50);
});

test('failed requests since the last call are counted for at most a hundred domains', (t) => {
  const clock = createManualClock();
  const [primary, other] = [1, 2].map(() => new LimitedValues(clock, true)) as [
    LimitedValues,
    LimitedValues,
  ];
  const long = 'x'.repeat(1_000);
  for (const domain of ['shop', long, 'shop', long]) other.failed(domain);
  primary.failed('shop');
  primary.addShare(other.drainShare());
  primary.addShare(other.drainShare());
  t.deepEqual(
    [...primary.drainFailures()],
    [
      ['shop', 3],
      [`${'x'.repeat(127)}…`, 2],
    ],
  );
  t.is(primary.drainFailures().size, 0);
  for (let at = 0; at < 200; at++) primary.failed(`d${at}`);
  t.is(primary.drainFailures().size, 100);
});

/** Makes `requests` requests within a second, with `values` different values; small numbers occur most. */
function flood(requests: number, values: number) {
  const random = createRandom(3);
  const limited = new LimitedValues(
    createManualClock(),
    true,
    () => random.below(2 ** 32) / 2 ** 32,
  );
  const truth = new Map<string, number>();
  const descriptor = { limit: undefined, hitsAddend: undefined, isNegativeHits: false };
  for (let index = 0; index < requests; index++) {
    const value = `${Math.floor(random.below(values) ** 2 / values)}`;
    truth.set(value, (truth.get(value) ?? 0) + 1);
    const descriptors = [{ ...descriptor, entries: [{ key: 'k', value }] }];
    limited.overLimit({ domain: 'd', hitsAddend: 0, descriptors }, [toHit(0)], [over], 1);
  }
  const period = limited.drainPeriod();
  const listed = period.values.map(({ item, count, error }) => {
    const value = item.entries[0]?.value ?? '';
    return { value, real: truth.get(value) ?? 0, count, error };
  });
  return { limited, truth, period, listed };
}

test('in a flood only samples are counted, within reported bounds', (t) => {
  const { limited, truth, period, listed } = flood(1_000_000, 200);
  t.is(limited.requests, 1_000_000);
  for (const { value, real, count, error } of listed) {
    t.true(
      real <= count && count - error <= real,
      `${value}: ${real} is not in ${count} - ${error}`,
    );
    t.true(error > 0 && error < count, `${count} - ${error}`);
  }
  const names = new Set(listed.map(({ value }) => value));
  const others = [...truth].filter(([value]) => !names.has(value)).map(([, real]) => real);
  t.true(Math.max(...others) <= period.unlistedAtMost);
});

test('in a smaller flood a sample represents fewer requests, and the bounds are closer', (t) => {
  const { period, listed } = flood(6_000, 10);
  for (const { value, real, count, error } of listed) {
    t.true(
      real <= count && count - error <= real,
      `${value}: ${real} is not in ${count} - ${error}`,
    );
    t.true(error < 0.75 * count, `${count} - ${error}`);
  }
  t.is(period.unlistedAtMost, 80);
});
