// Texts that people review: a line is a case, `TITLE | WHAT IS SO | WHAT FOLLOWS`, and other lines are heads.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { TestFn } from 'ava';

const { REWRITE } = process.env;

/** One test a line; `test`: of the file that calls. `REWRITE=1` writes what follows now. */
export function testLines(test: TestFn, path: URL, toResult: (given: string) => string): void {
  const lines = readFileSync(path, 'utf8').split('\n');
  const now = lines.map((line) => {
    const [title = '', given] = line.split(' | ');
    return given === undefined ? line : [title, given, toResult(given)].join(' | ');
  });
  if (REWRITE === '1') writeFileSync(path, now.join('\n'));
  const expected = readFileSync(path, 'utf8').split('\n');
  for (const [at, line] of now.entries()) {
    const [title = '', given] = line.split(' | ');
    if (given === undefined) continue;
    test(title, (t) => {
      t.is(
        line,
        expected[at] ?? '',
        `${basename(path.pathname)}:${at + 1}: REWRITE=1 writes what has changed`,
      );
    });
  }
}
