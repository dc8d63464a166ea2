import test from 'ava';
import { pluck } from '../support/pluck.ts';
import { findMutants } from './mutants.ts';

const inLine = (line: string) => findMutants(`() => {\n${line}\n};`).map(({ after }) => after);

for (const [line, ...mutants] of [
  ['  const a = b < c;', '  const a = b <= c;'],
  ['  const a = b >= c;', '  const a = b > c;'],
  ['  const a = b === c;', '  const a = b !== c;'],
  ['  const a = b || !c;', '  const a = b && !c;', '  const a = b || c;'],
  ['  const a = 1_000;', '  const a = 1001;', '  const a = 999;'],
  ['  const a = 0;', '  const a = 1;'],
  ['  const a = all.some(isIn);', '  const a = all.every(isIn);'],
  ['  if (a) return b;', '  if (false && a) return b;', '  if (true || a) return b;', ''],
  ['  remember(a);', ''],
  ['  a.b = c;', ''],
  ['  count++;', ''],
  ["  say('1 < 2');", ''],
  ['  return a;'],
  ['  // a < b'],
  ["import { a } from './1.ts';"],
  ['  const waitMs = 5_000;', '  const waitMs = 10000;', '  const waitMs = 2500;'],
  ['  const waitMs = 2;', '  const waitMs = 3;', '  const waitMs = 1;'],
  ['  const least = a < b ? a : b;'],
] as const) {
  test(`mutants of: ${line.trim()}`, (t) => {
    t.deepEqual(inLine(line), mutants);
  });
}

test('a field that its constructor sets to undefined is undefined anyway, elsewhere it is not', (t) => {
  const source =
    'class A {\n  constructor() {\n    this.b = undefined;\n  }\n  end() {\n    this.b = undefined;\n  }\n}\n';
  t.deepEqual(pluck(findMutants(source), 'line'), [6]);
});

test('what is no program is no mutant, and neither is a change of types alone', (t) => {
  t.deepEqual(inLine('  let a: true | undefined;'), []);
  t.deepEqual(inLine('  const [a = 1'), []);
});

test('types have no mutants, and what comes after them has', (t) => {
  const source =
    'interface A {\n  readonly b: true;\n}\ntype B =\n  | { c: true }\n  | { c: false };\n\nconst a = true;\n';
  t.deepEqual(findMutants(source), [
    {
      line: 8,
      offset: source.indexOf('true;\n', 60),
      before: 'const a = true;',
      after: 'const a = false;',
    },
  ]);
});
