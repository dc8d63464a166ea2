// Each difference in worker/docs/differences.md is shown by a test that is there.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { differenceProofs } from './difference-proofs.ts';

const root = join(import.meta.dirname, '..', '..');
const page = readFileSync(join(root, 'worker/docs/differences.md'), 'utf8');
const differences = page
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| Here |'))
  .map((line) => line.split(/(?<!\\)\|/)[1]?.trim());

test('the page and the list of proofs have the same differences, in the same order', (t) => {
  t.true(differences.length > 20, `${differences.length} rows`);
  t.deepEqual(
    differenceProofs.map(({ here }) => here),
    differences,
  );
});

for (const { here, file, text } of differenceProofs) {
  test(`a test shows that: ${here}`, (t) => {
    t.true(existsSync(join(root, file)), `there is no ${file}`);
    const source = readFileSync(join(root, file), 'utf8');
    const named = file.endsWith('.ts') ? titlesOf(source) : [source];
    t.true(text.length >= 3 && named.some((title) => title.includes(text)), `${file}: "${text}"`);
  });
}

/** What tests are named: the first argument of a call of `test`, of a function that makes one, or of a `check` of a contract. */
function titlesOf(source: string): string[] {
  const titles = /(?:\b(?:\w*[tT]est|check)(?:\.\w+)?|\))\(\s*(['"`])(.*?)\1,?\s/gs;
  return [...source.matchAll(titles)].map(([, , title = '']) => title);
}

test('a text that stands in a file, but in no title, is no proof', (t) => {
  const source = "import { a } from './b.ts';\ntest('a title', (t) => t.is(a, 'other'));\n";
  t.deepEqual(titlesOf(source), ['a title']);
  t.deepEqual(titlesOf("testWith(test, 'curl')(`two`, (t) => {});"), ['two']);
});
