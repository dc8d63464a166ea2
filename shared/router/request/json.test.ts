import test from 'ava';
import fc from 'fast-check';
import { testLines } from '../../../test/support/reviewed-lines.ts';
import { BadRequest } from '../errors.ts';
import { parseJson } from './json.ts';

test('JSON is read as by JSON.parse, for everything that is allowed', (t) => {
  const allowed = fc
    .jsonValue({ maxDepth: 4 })
    .filter((value) => !/__proto__|constructor|\\u0000|e\+|\d{16}/.test(JSON.stringify(value)));
  fc.assert(
    fc.property(allowed, (value) => {
      const text = JSON.stringify(value);
      t.deepEqual(parseJson(text, 32), JSON.parse(text));
    }),
  );
});

testLines(test, new URL('json.txt', import.meta.url), (given, t) => {
  try {
    return JSON.stringify(parseJson(given, 32));
  } catch (error) {
    t.true(error instanceof BadRequest);
    return (error as Error).message;
  }
});

test('nesting is bounded before it is parsed, brackets in texts not counted', (t) => {
  t.notThrows(() => parseJson(`${'['.repeat(32)}${']'.repeat(32)}`, 32));
  t.throws(() => parseJson(`${'['.repeat(33)}${']'.repeat(33)}`, 32), {
    message: /deeper than 32/,
  });
  t.throws(() => parseJson('['.repeat(1_000_000), 32), { message: /deeper than 32/ });
  t.is(parseJson(`"\\"${'['.repeat(40)}"`, 32), `"${'['.repeat(40)}`);
});
