import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { createMutantTests } from './mutant-tests.ts';

/** The imports of each file, by path. */
function setUp(t: ExecutionContext, files: Record<string, readonly string[]>) {
  const root = createTemporaryFolder(t);
  for (const [path, imports] of Object.entries(files)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    const lines = imports.map((name) => `import { a } from '${name}';`);
    writeFileSync(join(root, path), lines.join('\n'));
  }
  const tests = createMutantTests(root, Object.keys(files));
  let processes = 0;
  /** A test has run the first ten characters of the source, except the fifth. */
  const run = (path: string, source: string) => {
    const folder = mkdtempSync(join(root, 'coverage-'));
    const ranges = [
      { startOffset: 0, endOffset: 10, count: 1 },
      { startOffset: 4, endOffset: 5, count: 0 },
    ];
    const result = [path, source].map((each) => ({
      url: pathToFileURL(join(root, each)).href,
      functions: [{ ranges }],
    }));
    processes++;
    writeFileSync(join(folder, `coverage-${processes}-1-0.json`), JSON.stringify({ result }));
    tests.addCoverage(folder);
  };
  return { tests, run };
}

test('tests that ran the position are selected, those beside the source first', (t) => {
  const { tests, run } = setUp(t, {
    'a/one.ts': [],
    'a/one.test.ts': ['./one.ts'],
    'a/two.test.ts': ['./one.ts'],
    'b/three.test.ts': ['../a/one.ts'],
    'b/other.test.ts': [],
  });
  for (const path of ['b/three.test.ts', 'a/two.test.ts', 'a/one.test.ts']) run(path, 'a/one.ts');
  const all = [['a/one.test.ts'], ['a/two.test.ts'], ['b/three.test.ts']];
  t.deepEqual(tests.stages('a/one.ts', 3, 'near'), all);
  t.deepEqual(tests.stages('a/one.ts', 4, 'near'), [], 'the innermost range counts');
  t.deepEqual(tests.stages('a/one.ts', 5, 'near'), all);
  t.deepEqual(tests.stages('a/one.ts', 10, 'near'), []);
  tests.leaveOut(['a/two.test.ts']);
  t.deepEqual(tests.stages('a/one.ts', 3, 'near'), [['a/one.test.ts'], ['b/three.test.ts']]);
});

test('a test without coverage is selected for every position', (t) => {
  const { tests } = setUp(t, { 'a/one.ts': [], 'a/one.test.ts': ['./one.ts'] });
  t.deepEqual(tests.stages('a/one.ts', 99, 'near'), [['a/one.test.ts']]);
});

test('near means three imports, and contracts from anywhere; features are far; slow folders are neither', (t) => {
  const { tests } = setUp(t, {
    'a/one.ts': [],
    'b/two.ts': ['../a/one.ts'],
    'b/three.ts': ['./two.ts'],
    'b/four.ts': ['./three.ts'],
    'b/three.test.ts': ['./three.ts'],
    'b/four.test.ts': ['./four.ts'],
    'test/contract/c.test.ts': ['../../b/four.ts'],
    'test/feature/f.test.ts': ['../../a/one.ts'],
    'test/e2e/e.test.ts': ['../../a/one.ts'],
  });
  const near = tests.candidates(['a/one.ts'], 'near');
  t.deepEqual(near.sort(), ['b/three.test.ts', 'test/contract/c.test.ts']);
  t.deepEqual(tests.candidates(['a/one.ts'], 'far'), ['test/feature/f.test.ts', 'b/four.test.ts']);
});
