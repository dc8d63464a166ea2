import test from 'ava';
import fc from 'fast-check';
import { createWindows, toCounterKey } from '../../shared/counting/counter-key.ts';
import type { Match } from '../../shared/rules/rule.ts';
import { plainLimit } from '../../test/support/plain-rules.ts';
import { createCounterKeys } from './hit.ts';

function createMatch(sharedValues?: Match['sharedValues']): Match {
  const match = { metricKey: '', metricKeyIsStatic: true, sharedValues };
  return { limit: plainLimit, ...match, parts: undefined, listedAs: undefined };
}

// Few characters, including the separator, so that keys of different entries are similar.
const text = fc.string({ unit: fc.constantFrom('a', 'b', '_', '1', 'é'), maxLength: 6 });
const entry = fc.record({ key: text, value: fc.oneof(text, fc.constant('long'.repeat(200))) });

test('a key is always that of its own entries, rule and window, whatever keys came before', (t) => {
  const nowSeconds = fc.oneof(
    fc.constantFrom(0, 59, 1_795_219_199, 1_795_219_200),
    fc.integer({ min: 0, max: 20_000_000_000 }),
  );
  const step = fc.record({
    rule: fc.nat(3),
    entries: fc.array(entry, { minLength: 1, maxLength: 3 }),
    nowSeconds,
    isShared: fc.boolean(),
  });
  fc.assert(
    fc.property(text, fc.array(step, { minLength: 2, maxLength: 40 }), (prefix, steps) => {
      const keys = createCounterKeys(prefix);
      const windowAt = createWindows({ weekResetDay: 0, calendarMonths: false });
      // A rule belongs to one domain.
      const rules = ['d', 'd_a', '', 'e'].map((domain) => ({ domain, match: createMatch() }));
      for (const { rule, entries, nowSeconds: second, isShared } of steps) {
        const { domain, match: plain } = rules[rule] as (typeof rules)[number];
        const match = isShared ? { ...plain, sharedValues: entries.map(() => 'x*') } : plain;
        const window = windowAt('minute', 1, second);
        const key = toCounterKey(prefix, domain, entries, match.sharedValues, window.start);
        // The second time it is stored, the third time it is found.
        for (let time = 1; time <= 3; time++)
          t.is(keys.of(domain, { entries }, match, window), key);
      }
    }),
  );
});

/** Counts how often its start is read: once for each key that is formed. */
function createCountedWindow() {
  const window = {
    reads: 0,
    get start() {
      window.reads++;
      return 1_795_219_200;
    },
    seconds: 60,
  };
  return window;
}

test('a key requested twice in a row is cached the third time, and not formed again', (t) => {
  const keys = createCounterKeys('');
  const window = createCountedWindow();
  const match = createMatch();
  const entries = [{ key: 'path', value: '/web' }];
  const ask = () => keys.of('d', { entries }, match, window);
  ask();
  ask();
  t.is(window.reads, 2);
  t.is(ask(), 'd_path_/web_1795219200');
  t.is(ask(), 'd_path_/web_1795219200');
  t.is(window.reads, 2);
});

test('as many keys as slots are cached at the same time', (t) => {
  const keys = createCounterKeys('');
  const window = createCountedWindow();
  const match = createMatch();
  const askAll = () => {
    for (let hash = 0; hash < 1_024; hash++) {
      keys.of('d', { entries: [{ key: 'path', value: `${hash}` }], hash }, match, window);
    }
    return window.reads;
  };
  askAll();
  const known = askAll();
  t.is(askAll(), known);
});

test('entries with the same hash each have their own key', (t) => {
  const keys = createCounterKeys('');
  const match = createMatch();
  const window = { start: 1_795_219_200, seconds: 60 };
  const of = (key: string, value: string) =>
    keys.of('d', { entries: [{ key, value }], hash: 7 }, match, window);
  for (let time = 1; time <= 3; time++) t.is(of('a', 'b'), 'd_a_b_1795219200');
  for (const [key, value] of [
    ['a', 'c'],
    ['x', 'b'],
    ['a', 'bb'],
    ['a', ''],
  ] as const) {
    t.is(of(key, value), `d_${key}_${value}_1795219200`);
  }
  for (let time = 1; time <= 3; time++) of('a', 'bc');
  t.is(of('ab', 'c'), 'd_ab_c_1795219200', 'as long, and cut elsewhere');
});
