import { inspect } from 'node:util';
import test from 'ava';
import fc from 'fast-check';
import { testLines } from '../test/support/reviewed-lines.ts';
import { formatDuration, parseDuration } from './duration.ts';

testLines(test, new URL('duration.txt', import.meta.url), (given) => {
  const value = JSON.parse(given);
  if (typeof value === 'number') return formatDuration(value);
  const result = parseDuration(value);
  return result.ok ? `${inspect(result.ms)} ms` : result.reason;
});

test('a formatted duration is parsed as the same number', (t) => {
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

test('no text makes the parser throw', (t) => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123456789.+-nuµmsh e') }), (text) => {
      const result = parseDuration(text);
      t.true(result.ok ? Number.isFinite(result.ms) : result.reason !== '');
    }),
  );
});
