// Pages are easy to find and to scan: they are few, each opens with its audience, the front page is short, and proofs
// of a sentence are here, not in the tables for operators.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { controlPlaneTable } from '../../control-plane/server/settings/table.ts';
import { toRows } from '../../shared/settings/setting.ts';
import { workerTable } from '../../worker/settings/table.ts';
import { listFiles } from '../support/listed-files.ts';

const root = join(import.meta.dirname, '..', '..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');

/** The front page is for all readers; the others have their own format. */
const pages = listFiles('*.md').filter(
  (path) => !['README.md', 'CHANGELOG.md', 'test/bench/results/results.md'].includes(path),
);

for (const page of pages) {
  test(`${page} opens with its audience`, (t) => {
    t.regex(read(page), /^# .*\n\nFor those who(?:se)? /);
  });
}

test('the front page can be read in a few minutes', (t) => {
  const words = read('README.md').split(/\s+/).length;
  t.true(words < 1500, `${words} words`);
});

test('the documents are few, and each is at most two links from the front page', (t) => {
  const linksOf = (page: string) =>
    [...read(page).matchAll(/\]\(([^()\s#:]+\.md)[^()\s]*\)/g)].map(([, link = '']) =>
      join(dirname(page), link),
    );
  const first = linksOf('README.md');
  const reached = new Set(['README.md', ...first, ...first.flatMap(linksOf)]);
  const all = listFiles('*.md');
  t.deepEqual(
    all.filter((page) => !reached.has(page)),
    [],
  );
  const words = all.reduce((sum, page) => sum + read(page).trim().split(/\s+/).length, 0);
  t.true(all.length <= 30 && words <= 55_000, `${all.length} files, ${words} words`);
});

test('tables for operators name no tests', (t) => {
  for (const page of pages.filter((path) => /^(?:worker|control-plane)\/docs\//.test(path))) {
    const rows = read(page).split('\n');
    t.deepEqual(
      rows.filter((line) => line.startsWith('|') && /\.test\.ts|Proven by/.test(line)),
      [],
      page,
    );
  }
});

test('each setting is described in one sentence', (t) => {
  const docs = [workerTable, controlPlaneTable].flatMap((table) =>
    toRows(table).map(({ setting }) => setting.doc),
  );
  t.deepEqual(
    docs.filter((doc) => /[.!?] |\.$/.test(doc)),
    [],
  );
});
