import test from 'ava';
import fc from 'fast-check';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { readingJson, TooDeep, TooMany, writingJson } from './json-in-slices.ts';

const read = (text: string, maxDepth = 100) =>
  runAtOnce(readingJson(Buffer.from(text), { maxDepth }));
const write = (value: unknown) => [...writingJson(value)].join('');

/** The parsed value, or the fact that parsing failed. */
function outcomeOf(parse: () => unknown): unknown {
  try {
    return [parse()];
  } catch {
    return 'refused';
  }
}

test('JSON is read as JSON.parse reads it, including blanks, escapes and repeated names', (t) => {
  fc.assert(
    fc.property(fc.json({ stringUnit: 'binary' }), fc.constantFrom(0, 1, '\t'), (text, indent) => {
      const value = JSON.parse(text);
      t.deepEqual(read(text), value);
      t.deepEqual(read(JSON.stringify(value, undefined, indent)), value);
    }),
  );
  for (const text of [
    '{"a":1,"b":2,"a":3}',
    '{"__proto__":{"x":1}}',
    '"\\ud83d\\ude00\\u0000"',
    '"\ufeffa"',
  ]) {
    t.deepEqual(read(text), JSON.parse(text));
    t.is(JSON.stringify(read(text)), JSON.stringify(JSON.parse(text)));
  }
});

test('a text that JSON.parse refuses is refused, wherever a character is wrong', (t) => {
  const mutant = fc.tuple(fc.json(), fc.nat(), fc.constantFrom(...'"\\{}[],:0-.eu\n \u0001'));
  fc.assert(
    fc.property(mutant, ([text, at, character]) => {
      const index = at % (text.length + 1);
      for (const skipped of [0, 1]) {
        const changed = text.slice(0, index) + character + text.slice(index + skipped);
        const own = outcomeOf(() => read(changed));
        t.deepEqual(
          own,
          outcomeOf(() => JSON.parse(changed)),
          changed,
        );
      }
    }),
  );
  t.throws(() => runAtOnce(readingJson(Buffer.from([0x22, 0xff, 0x22]), { maxDepth: 1 })), {
    instanceOf: TypeError,
  });
  t.throws(() => read('1'.repeat(2_000)), { instanceOf: SyntaxError });
});

test('a long text is read and written in parts that split no character and no escape', (t) => {
  const unit = fc.constantFrom('a', '\n', '"', '\\', '\u0001', 'é', '漢', '😀', '\ud800');
  fc.assert(
    fc.property(fc.array(unit, { minLength: 1, maxLength: 50 }), fc.nat(60), (units, shift) => {
      const text = 'x'.repeat(shift) + units.join('').repeat(Math.ceil(140_000 / units.length));
      const json = JSON.stringify({ text });
      t.true(write({ text }) === json);
      t.true((read(json) as { text: string }).text === text);
    }),
    { numRuns: 30 },
  );
});

test('values are written as JSON.stringify writes them', (t) => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      t.is(write(value), JSON.stringify(value));
      const many = { list: new Array(300).fill(value), object: Object.entries(new Array(300)) };
      t.true(write(many) === JSON.stringify(many));
      const items = (function* () {
        yield* many.list;
      })();
      t.true(write({ items }) === JSON.stringify({ items: many.list }));
    }),
  );
  const value = { a: undefined, b: [undefined, Number.NaN], c: {}, d: [] };
  t.is(write(value), JSON.stringify(value));
});

test('no step takes more than a part of the total time', (t) => {
  const value = {
    files: Array.from({ length: 10_000 }, (_, at) => ({ path: `${at}`, text: 'x'.repeat(200) })),
  };
  const parts = [...writingJson({ ...value, long: 'x'.repeat(1_000_000) })];
  t.true(parts.every((part) => part.length < 150_000));
  const json = Buffer.from(parts.join(''));
  t.true([...readingJson(json, { maxDepth: 3 })].length > 100);
});

test('nesting is bounded', (t) => {
  t.notThrows(() => read('[[[1]]]', 3));
  t.throws(() => read('[[[[1]]]]', 3), { instanceOf: TooDeep });
  t.throws(() => read('['.repeat(1_000_000), 32), { instanceOf: TooDeep });
});

test('each value is checked with its name', (t) => {
  const seen: unknown[] = [];
  const check = (...checked: unknown[]) => void seen.push(checked);
  runAtOnce(readingJson(Buffer.from('{"a":[1e2,null]}'), { maxDepth: 9 }, check));
  t.deepEqual(seen, [
    ['', 100, { source: '1e2' }],
    ['', null, { source: 'null' }],
    ['a', [100, null], {}],
    ['', { a: [100, null] }, {}],
  ]);
});

test('the numbers of values and blanks are bounded, and blanks between values are read in steps', (t) => {
  const reading = (text: string, maxValues: number) =>
    readingJson(Buffer.from(text), { maxDepth: 3, maxValues });
  t.deepEqual(runAtOnce(reading('{"a":[1,2]}', 4)), { a: [1, 2] });
  t.throws(() => runAtOnce(reading('{"a":[1,2,3]}', 4)), { instanceOf: TooMany });
  t.throws(() => read(' '.repeat(70_000)), { message: 'there are too many blanks' });
  t.true([...reading(`[${`${' '.repeat(60_000)}1,`.repeat(20)}1]`, 30)].length >= 10);
});
