import test from 'ava';
import { findMutants } from './mutants.ts';

const inLine = (line: string) => findMutants(line).map(({ after }) => after);

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
] as const) {
  test(`mutants of: ${line.trim()}`, (t) => {
    t.deepEqual(inLine(line), mutants);
  });
}

test('types have no mutants, and what comes after them has', (t) => {
  const source =
    'interface A {\n  readonly b: true;\n}\ntype B =\n  | { c: true }\n  | { c: false };\n\nconst a = true;\n';
  t.deepEqual(findMutants(source), [
    { line: 8, before: 'const a = true;', after: 'const a = false;' },
  ]);
});
