// The table of differences in the README names a test for each; this holds it to that.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test from 'ava';

const root = join(import.meta.dirname, '..');
const readme = await readFile(join(import.meta.dirname, 'README.md'), 'utf8');
const rows = readme
  .slice(readme.indexOf('## Differences'), readme.indexOf('## Limits'))
  .split('\n')
  .filter((line) => line.startsWith('| ') && !line.startsWith('| Here'));

for (const row of rows) {
  const [, here, , proof] = row.split(/(?<!\\)\|/).map((cell) => cell.trim());
  test(`a test shows that: ${here}`, async (t) => {
    const [, path = '', text = ''] = /^`([^`]+)` ?(.*)$/.exec(proof ?? '') ?? [];
    const content = await readFile(join(root, path), 'utf8');
    t.true(content.includes(text), `${path} does not contain "${text}"`);
  });
}

test('the table of differences is there', (t) => {
  t.true(rows.length > 20, `${rows.length} rows`);
});
