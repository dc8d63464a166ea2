// Tests as reviewed text: a line is a case, `TITLE | GIVEN | RESULT`, and other lines are headings.
import { readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';
import type { ExecutionContext, TestFn } from 'ava';

const { REWRITE } = process.env;

/** One test per line; `test`: that of the calling file. `REWRITE=1` writes the current results. */
export function testLines(
  test: TestFn,
  path: URL,
  toResult: (given: string, t: ExecutionContext) => string | Promise<string>,
): void {
  const lines = readFileSync(path, 'utf8').split('\n');
  for (const [at, line] of lines.entries()) {
    const [title = '', given] = line.split(' | ');
    if (given === undefined) continue;
    test(title, async (t) => {
      const now = [title, given, await toResult(given, t)].join(' | ');
      if (REWRITE === '1') lines[at] = now;
      const position = `${basename(path.pathname)}:${at + 1}`;
      t.is(now, lines[at] ?? '', `${position}: REWRITE=1 writes what has changed`);
    });
  }
  if (REWRITE === '1') test.after(() => writeFileSync(path, lines.join('\n')));
}
