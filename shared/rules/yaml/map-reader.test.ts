import test from 'ava';
import { type MapReader, readMap } from './map-reader.ts';
import { parseYamlTree } from './yaml-tree.ts';

/** The value that `reading` returns for a mapping, and the problems that it reports. */
function read<Value>(yaml: string, reading: (fields: MapReader) => Value) {
  const { root, reporter } = parseYamlTree(yaml, 'f.yaml');
  const fields = root && readMap(root, '', 'the document', reporter);
  const value = fields && reading(fields);
  const reported = reporter
    .toProblems()
    .map(({ line, column, path, message, hint }) => [`${line}:${column} ${path}`, message, hint]);
  return { value, reported };
}

test('an absent or null value is distinguished from a wrong one', (t) => {
  const of = (yaml: string) =>
    read(yaml, (fields) => [fields.text('a'), fields.flag('a'), fields.count('a', 9)]).value;
  t.deepEqual(of('b: 1'), ['', false, undefined]);
  t.deepEqual(of('a: ~'), ['', false, undefined]);
  t.deepEqual(of('a: [1]'), [undefined, undefined, undefined]);
});

test('a value of the wrong kind is reported with its position, and a mistake with what to write', (t) => {
  const { reported } = read('list: [{on: "true", of: "7", at: {}}]', (fields) =>
    fields.maps('list').map((item) => [item.flag('on'), item.count('of', 9), item.text('at')]),
  );
  t.deepEqual(reported, [
    ['1:13 list[0].on', "on is 'true', not true or false", 'write it without quotes: true'],
    ['1:25 list[0].of', "of is '7', not a whole number from 0 to 9", 'write it without quotes: 7'],
    ['1:34 list[0].at', 'at is a mapping, not text', undefined],
  ]);
});

test('a word is one of the known ones, and an empty word is not', (t) => {
  const { value, reported } = read('a: day\nb: ""\nc: week\nd: [day]', (fields) =>
    ['a', 'b', 'c', 'd', 'e'].map((name) => fields.word(name, ['hour', 'day'])),
  );
  t.deepEqual(value, ['day', undefined, undefined, undefined, undefined]);
  t.deepEqual(reported, [
    ['3:4 c', "c is 'week', not hour or day", undefined],
    ['4:4 d', 'd is a list, not hour or day', undefined],
  ]);
});

test('a duration can be zero, but not negative', (t) => {
  const { value, reported } = read('a: 0s\nb: 90s\nc: -1s\nd: [1s]', (fields) =>
    ['a', 'b', 'c', 'd', 'e'].map((name) => fields.duration(name)),
  );
  t.deepEqual(value, [0, 90_000, undefined, undefined, undefined]);
  t.deepEqual(reported, [
    ['3:4 c', "c is '-1s', not a duration such as 90s or 10m", undefined],
    ['4:4 d', 'd is a list, not a duration such as 90s or 10m', undefined],
  ]);
});

test('a mapping of names to texts contains only the values that are texts', (t) => {
  const { value, reported } = read('a: {x: one, y: [2], z: 3}\nb: text', (fields) =>
    ['a', 'b', 'c'].map((name) => fields.texts(name)),
  );
  t.deepEqual(value, [
    [
      ['x', 'one'],
      ['z', '3'],
    ],
    [],
    [],
  ]);
  t.deepEqual(reported, [
    ['1:16 a.y', 'y is a list, not text', undefined],
    ['2:4 b', "b is 'text', not a mapping of names to texts", undefined],
  ]);
});

test('an unknown key is reported with the key most likely meant, which then counts as present', (t) => {
  const { value, reported } = read('naem: a\nother: b', (fields) => [
    ...fields.refuseOthers(['name', 'domains']),
  ]);
  t.deepEqual(value, ['name']);
  t.deepEqual(reported, [
    ['1:1 naem', "unknown key 'naem'", "did you mean 'name'?"],
    ['2:1 other', "unknown key 'other'", 'keys here: name and domains'],
  ]);
});

test('a field that nothing reads has no effect', (t) => {
  const { reported } = read('name: a\nlables: b', (fields) =>
    fields.warnOfOthers(['name', 'labels']),
  );
  t.deepEqual(reported, [['2:1 lables', 'lables has no effect here', "did you mean 'labels'?"]]);
});

test('a document compares names a bounded number of times', (t) => {
  const known = Array.from({ length: 20 }, (_, index) => `letter_${index}`);
  const slips = Array.from(
    { length: 500 },
    (_, index) => `lettre_${index % 20}${'_'.repeat(index / 20)}`,
  );
  const { value } = read(slips.map((slip) => `${slip}: 1\n`).join(''), (fields) =>
    slips.filter((slip) => fields.refuseKey(slip, known) !== undefined),
  );
  t.is(value?.length, 100, 'of 2,000 comparisons each slip takes 20');
});
