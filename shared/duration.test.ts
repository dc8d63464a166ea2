import test from 'ava';
import fc from 'fast-check';
import { formatDuration, parseDuration } from './duration.ts';

const read: [string, number][] = [
  ['0', 0],
  ['-0', 0],
  ['+0', 0],
  ['0s', 0],
  ['5s', 5_000],
  ['+5s', 5_000],
  ['-5s', -5_000],
  ['1m30s', 90_000],
  ['1h', 3_600_000],
  ['24h', 86_400_000],
  ['1.5h', 5_400_000],
  ['.5s', 500],
  ['1.s', 1_000],
  ['150us', 0.15],
  ['150\u00b5s', 0.15],
  ['150\u03bcs', 0.15],
  ['1ns', 0.000001],
  ['1s1s', 2_000],
  ['1s1h', 3_601_000],
  ['0.0000000019s', 0.000001],
  ['2562047h47m16.854775807s', 2 ** 63 / 1e6],
];
for (const [text, ms] of read) {
  test(`the duration ${text} is ${ms} ms`, (t) => {
    t.deepEqual(parseDuration(text), { ok: true, ms });
  });
}

const units = 'ns, us, ms, s, m, h';
const refused: [string, string][] = [
  ['', 'empty'],
  ['-', 'not a duration'],
  ['s', 'not a duration'],
  ['.s', 'not a duration'],
  ['.', 'not a duration'],
  ['--5s', 'not a duration'],
  [' 5s', 'not a duration'],
  ['10', `the unit is missing (one of ${units})`],
  ['1m30', `the unit is missing (one of ${units})`],
  ['1.5.5s', `the unit is missing (one of ${units})`],
  ['5 s', `unknown unit " s" (one of ${units})`],
  ['5S', `unknown unit "S" (one of ${units})`],
  ['1d', `unknown unit "d" (one of ${units})`],
  ['5s ', `unknown unit "s " (one of ${units})`],
  ['1e3s', `unknown unit "e" (one of ${units})`],
  ['2562047h47m16.854775808s', 'too long a time'],
  [`${'9'.repeat(64)}s`, 'too long'],
];
for (const [text, reason] of refused) {
  test(`the text ${JSON.stringify(text)} is refused as a duration`, (t) => {
    t.deepEqual(parseDuration(text), { ok: false, reason });
  });
}

const written: [number, string][] = [
  [0, '0s'],
  [0.0000001, '0s'],
  [90_000, '1m30s'],
  [3_600_000, '1h'],
  [3_605_000, '1h5s'],
  [1_500, '1.5s'],
  [100, '100ms'],
  [0.15, '150us'],
  [0.0015, '1.5us'],
  [0.000001, '1ns'],
  [-1_500, '-1.5s'],
  [90_061_001, '25h1m1.001s'],
];
for (const [ms, text] of written) {
  test(`${ms} ms are written as ${text}`, (t) => {
    t.is(formatDuration(ms), text);
  });
}

test('a duration that was written is read back as the same number', (t) => {
  // Up to 2^51 ns (26 days) a double holds milliseconds to the nanosecond.
  fc.assert(
    fc.property(fc.maxSafeInteger(), (number) => {
      const ms = (number % 2 ** 51) / 1e6;
      const result = parseDuration(formatDuration(ms));
      t.deepEqual(result, { ok: true, ms: ms + 0 });
    }),
  );
});

test('the parts of a duration add up, in any order and number', (t) => {
  const part = fc.tuple(
    fc.nat({ max: 1_000 }),
    fc.constantFrom(['ms', 1], ['s', 1_000], ['m', 60_000], ['h', 3_600_000]),
  );
  fc.assert(
    fc.property(fc.array(part, { minLength: 1, maxLength: 8 }), (parts) => {
      const text = parts.map(([count, [unit]]) => `${count}${unit}`).join('');
      const ms = parts.reduce((sum, [count, [, each]]) => sum + count * Number(each), 0);
      t.deepEqual(parseDuration(text), { ok: true, ms });
    }),
  );
});

test('no text makes the reader throw', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.+-nuµmsh e') }), (text) => {
      const result = parseDuration(text);
      t.true(result.ok ? Number.isFinite(result.ms) : result.reason !== '');
    }),
  );
});
