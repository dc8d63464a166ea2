import test from 'ava';
import fc from 'fast-check';
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

test('names that reach for a prototype are refused at any depth', (t) => {
  for (const text of [
    '{"__proto__":1}',
    '[{"a":{"__proto__":{}}}]',
    '{"\\u005f_proto__":1}',
    '{"constructor":{"prototype":{}}}',
  ]) {
    t.throws(() => parseJson(text, 32), { instanceOf: BadRequest, message: /not allowed/ });
  }
  t.deepEqual(parseJson('{"constructor":1,"prototype":{}}', 32), { constructor: 1, prototype: {} });
});

test('nesting is bounded before it is parsed, brackets in texts not counted', (t) => {
  t.notThrows(() => parseJson(`${'['.repeat(32)}${']'.repeat(32)}`, 32));
  t.throws(() => parseJson(`${'['.repeat(33)}${']'.repeat(33)}`, 32), {
    message: /deeper than 32/,
  });
  t.throws(() => parseJson('['.repeat(1_000_000), 32), { message: /deeper than 32/ });
  t.is(parseJson(`"\\"${'['.repeat(40)}"`, 32), `"${'['.repeat(40)}`);
});

test('numbers that a double cannot hold are refused, not rounded', (t) => {
  t.is(parseJson('9007199254740991', 32), 9007199254740991);
  t.throws(() => parseJson('{"a":[9007199254740993]}', 32), { message: /too large/ });
  t.throws(() => parseJson('1e999', 32), { message: /too large/ });
  t.is(parseJson('1e300', 32), 1e300);
});

test('NUL in names and texts is refused', (t) => {
  t.throws(() => parseJson('"a\\u0000"', 32), { message: /NUL/ });
  t.throws(() => parseJson('{"a\\u0000":1}', 32), { message: /NUL/ });
});

test('what is not JSON is refused without a word of it', (t) => {
  t.throws(() => parseJson('{"secret":', 32), { message: 'the body is not JSON' });
});
