import test from 'ava';
import type { Unit } from '../rules/unit.ts';
import { createWindows, toCounterKey } from './counter-key.ts';

const thursday = 4;
const seconds = (iso: string) => Date.parse(iso) / 1000;
const iso = (unixSeconds: number) => new Date(unixSeconds * 1000).toISOString();

const fixed: readonly [Unit, string, number][] = [
  ['second', '2026-11-21T13:45:59.000Z', 1],
  ['minute', '2026-11-21T13:45:00.000Z', 60],
  ['hour', '2026-11-21T13:00:00.000Z', 3600],
  ['day', '2026-11-21T00:00:00.000Z', 86_400],
];
for (const [unit, start, length] of fixed) {
  test(`a ${unit} window is cut at whole ${unit}s`, (t) => {
    const windowAt = createWindows({ weekResetDay: thursday, calendarMonths: false });
    const window = windowAt(unit, 1, seconds('2026-11-21T13:45:59Z'));
    t.is(iso(window.start), start);
    t.is(window.seconds, length);
  });
}

test('a week begins on Thursday, as the Unix epoch did', (t) => {
  const windowAt = createWindows({ weekResetDay: thursday, calendarMonths: false });
  const window = windowAt('week', 1, seconds('2026-11-21T13:45:59Z'));
  t.is(iso(window.start), '2026-11-19T00:00:00.000Z');
  t.is(window.seconds, 604_800);
});

for (let day = 0; day < 7; day++) {
  test(`a week can begin on weekday ${day}`, (t) => {
    const windowAt = createWindows({ weekResetDay: day, calendarMonths: false });
    for (let hour = 0; hour < 24 * 15; hour += 5) {
      const now = seconds('2026-11-21T13:45:59Z') + hour * 3600;
      const window = windowAt('week', 1, now);
      t.is(new Date(window.start * 1000).getUTCDay(), day);
      t.is(window.start % 86_400, 0);
      t.true(window.start <= now && now < window.start + 604_800);
    }
  });
}

test('a month is 30 days from the epoch', (t) => {
  const windowAt = createWindows({ weekResetDay: thursday, calendarMonths: false });
  const window = windowAt('month', 1, seconds('2026-11-21T13:45:59Z'));
  t.is(window.seconds, 2_592_000);
  t.is(window.start % 2_592_000, 0);
});

test('a calendar month runs from its first to its last day', (t) => {
  const windowAt = createWindows({ weekResetDay: thursday, calendarMonths: true });
  const february = windowAt('month', 1, seconds('2028-02-29T23:59:59Z'));
  t.is(iso(february.start), '2028-02-01T00:00:00.000Z');
  t.is(february.seconds, 29 * 86_400);
  const december = windowAt('month', 1, seconds('2026-12-31T23:59:59Z'));
  t.is(iso(december.start + december.seconds), '2027-01-01T00:00:00.000Z');
});

test('a year is 365 days, calendar months or not', (t) => {
  const windowAt = createWindows({ weekResetDay: thursday, calendarMonths: true });
  t.is(windowAt('year', 1, seconds('2026-11-21T00:00:00Z')).seconds, 31_536_000);
});

test('a window is left at its end, and entered again when the clock is set back', (t) => {
  const windowAt = createWindows({ weekResetDay: thursday, calendarMonths: false });
  const first = windowAt('minute', 1, 119);
  t.is(first.start, 60);
  t.is(windowAt('minute', 1, 60), first, 'the same object while the window lasts');
  t.is(windowAt('minute', 1, 120).start, 120);
  t.is(windowAt('minute', 1, 119).start, 60);
});

test('domain, keys and values are joined by underscores, and the window start ends the key', (t) => {
  const entries = [
    { key: 'k1', value: 'x' },
    { key: 'k2', value: 'y' },
  ];
  t.is(toCounterKey('', 'd1', entries, undefined, 1795221180), 'd1_k1_x_k2_y_1795221180');
});

test('an empty value leaves two underscores', (t) => {
  t.is(
    toCounterKey('', 'd1', [{ key: 'quota', value: '' }], undefined, 1795219200),
    'd1_quota__1795219200',
  );
});

test('a prefix goes in front of the domain', (t) => {
  t.is(
    toCounterKey('pfx:', 'd1', [{ key: 'k1', value: 'M' }], undefined, 1795221720),
    'pfx:d1_k1_M_1795221720',
  );
});

test('a shared value is replaced by its pattern, the others stay', (t) => {
  const entries = [
    { key: 'c', value: 'mno' },
    { key: 'd', value: 'D' },
  ];
  t.is(toCounterKey('', 'w', entries, ['m*', undefined], 1795219200), 'w_c_m*_d_D_1795219200');
});
