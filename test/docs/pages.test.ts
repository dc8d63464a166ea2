// Pages can be scanned: each opens with who it is for, the two that everybody begins with are short, and
// what proves a sentence stands here, not in the tables of those who run the programs.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { controlPlaneTable } from '../../control-plane/settings/table.ts';
import { toRows } from '../../shared/settings/setting.ts';
import { workerTable } from '../../worker/settings/table.ts';
import { listFiles } from '../support/listed-files.ts';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** The front page is for everybody; the others have a form of their own. */
const pages = listFiles('*.md').filter(
  (path) => !['README.md', 'CHANGELOG.md', 'test/bench/results/results.md'].includes(path),
);

for (const page of pages) {
  test(`${page} opens with who it is for`, (t) => {
    t.regex(read(page), /^# .*\n\nFor those who(?:se)? /);
  });
}

for (const page of ['worker/README.md', 'control-plane/README.md']) {
  test(`${page} is read in a few minutes`, (t) => {
    const words = read(page).split(/\s+/).length;
    t.true(words < 1000, `${words} words`);
  });
}

test('tables of those who run the programs name no tests', (t) => {
  for (const page of pages.filter((path) =>
    /^(?:worker|control-plane)\/(?:README|docs\/)/.test(path),
  )) {
    const rows = read(page).split('\n');
    t.deepEqual(
      rows.filter((line) => line.startsWith('|') && /\.test\.ts|Proven by/.test(line)),
      [],
      page,
    );
  }
});

test('each setting is told in one sentence', (t) => {
  const docs = [workerTable, controlPlaneTable].flatMap((table) =>
    toRows(table).map(({ setting }) => setting.doc),
  );
  t.deepEqual(
    docs.filter((doc) => /[.!?] |\.$/.test(doc)),
    [],
  );
});
