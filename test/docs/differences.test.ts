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
    t.true(readFileSync(join(root, file), 'utf8').includes(text), `${file} has no "${text}"`);
  });
}
