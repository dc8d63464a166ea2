import test from 'ava';
import { pluck } from '../support/pluck.ts';
import { testLines } from '../support/reviewed-lines.ts';
import { findMutants } from './mutants.ts';

const inLine = (line: string) => findMutants(`() => {\n${line}\n};`).map(({ after }) => after);

testLines(
  test,
  new URL('mutants.txt', import.meta.url),
  (given) =>
    inLine(given)
      .map((mutant) => mutant || 'nothing in its place')
      .join(' ~ ') || 'none',
);

test('an assignment of undefined to a field is no mutant in its constructor, elsewhere it is', (t) => {
  const source =
    'class A {\n  constructor() {\n    this.b = undefined;\n  }\n  end() {\n    this.b = undefined;\n  }\n}\n';
  t.deepEqual(pluck(findMutants(source), 'line'), [6]);
});

test('an invalid program is no mutant, and neither is a change of types only', (t) => {
  t.deepEqual(inLine('  let a: true | undefined;'), []);
  t.deepEqual(inLine('  const [a = 1'), []);
});

test('types have no mutants, and the code after them has', (t) => {
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
