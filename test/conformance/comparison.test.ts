import test from 'ava';
import type { Json } from './case-file.ts';
import { compare, fillWindowStarts, waitForRoomMs, withoutDefaults } from './comparison.ts';

test('equal observations have no difference', (t) => {
  const value: Json = { a: [1, { b: 'x' }], c: true };
  t.deepEqual(compare(value, structuredClone(value)), []);
});

test('each difference has its position, the expected and the actual value', (t) => {
  const expected: Json = { list: [{ a: 1 }, { a: 2 }], gone: 'x', same: 1 };
  const actual: Json = { list: [{ a: 1 }, { a: 3 }], extra: null, same: 1 };
  t.deepEqual(compare(expected, actual), [
    'extra: unexpected null',
    'gone: missing, expected "x"',
    'list[1].a: expected 2, got 3',
  ]);
});

test('lists of different lengths differ as a whole', (t) => {
  t.deepEqual(compare([1, 2], [1]), ['value: expected [1,2], got [1]']);
});

test('types are not converted', (t) => {
  t.is(compare('1', 1).length, 1);
  t.is(compare(false, 0).length, 1);
  t.is(compare({}, []).length, 1);
});

test('a bound accepts numbers above 0 and up to it, as text or number, with or without the unit', (t) => {
  for (const actual of ['1s', '60s', '0.5s', 60, '7'])
    t.deepEqual(compare('<=60s', actual), [], String(actual));
  for (const actual of ['0s', '61s', 61, -1, 'soon', '', null])
    t.is(compare('<=60s', actual).length, 1, String(actual));
});

test('a star accepts any value that is present', (t) => {
  t.deepEqual(compare({ text: '*' }, { text: '' }), []);
  t.is(compare({ text: '*' }, {}).length, 1);
  t.is(compare('*', null).length, 1);
});

test('defaults of a message are omitted at every depth, but not from lists', (t) => {
  t.deepEqual(
    withoutDefaults({
      a: 0,
      b: '',
      c: null,
      d: [],
      e: { f: 0 },
      g: [{ h: 0 }, { h: 1 }],
      i: false,
    }),
    { g: [{}, { h: 1 }] },
  );
});

test('window starts are filled in for units, and nothing else is changed', (t) => {
  const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
  t.is(
    fillWindowStarts('a_{minute} {hour} {week} {other}', nowMs),
    `a_${Date.UTC(2026, 0, 2, 3, 4) / 1000} ${Date.UTC(2026, 0, 2, 3) / 1000} ` +
      `${Date.UTC(2026, 0, 1) / 1000} {other}`,
  );
});

test('a case waits when a window that it counts in is about to end', (t) => {
  const at = (minute: number, second: number, ms = 0): number =>
    Date.UTC(2026, 0, 2, 3, minute, second, ms);
  t.is(waitForRoomMs('unit: minute', at(4, 30), 5), 0);
  t.is(waitForRoomMs('unit: minute', at(4, 57), 5), 3_100);
  t.is(waitForRoomMs('{"unit":"HOUR"}', at(4, 57), 5), 0);
  t.is(waitForRoomMs('{"unit":"HOUR"}', at(59, 55), 5), 5_100);
  t.is(waitForRoomMs('key_{hour}', at(59, 55), 5), 5_100);
  t.is(waitForRoomMs('unit: second', at(4, 30, 400), 5), 620);
  t.is(waitForRoomMs('no windows here', at(59, 59), 5), 0);
});
