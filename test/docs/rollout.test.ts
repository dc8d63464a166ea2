// What the pages say of rollouts is shown by tests that are there.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { type RolloutProof, rightsProofs, rolloutProofs } from './rollout-proofs.ts';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** Of one column, without its head; an empty cell goes on with the one above. */
function readColumn(page: string, mark: string, column: number): string[] {
  const section = page.split(`<!-- ${mark}:begin -->`)[1]?.split(`<!-- ${mark}:end -->`)[0] ?? '';
  return section
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(1)
    .map((line) => line.split(' | ')[column]?.replace(/^\| | \|$/g, '') ?? '');
}

for (const [path, mark, column, proofs] of [
  ['control-plane/docs/operating.md', 'rollout', 0, rolloutProofs],
  ['SECURITY.md', 'rights', 1, rightsProofs],
] as const) {
  test(`${path} and the list of proofs say the same of rollouts, in the same order`, (t) => {
    const lines = readColumn(read(path), mark, column);
    t.true(lines.length > 10, `${lines.length} lines`);
    t.deepEqual([...new Set(proofs.map(({ line }) => line))], lines);
  });
  for (const { line, file, text } of proofs as readonly RolloutProof[]) {
    test(`a test shows that ${mark}: ${line} (${text})`, (t) => {
      t.true(existsSync(join(root, file)), `there is no ${file}`);
      t.true(read(file).includes(text), `${file} has no "${text}"`);
    });
  }
}
