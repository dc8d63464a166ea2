import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { createTemporaryFolder } from '../../../test/support/temporary-folder.ts';
import { patching } from './patch-text.ts';

const toPatch = (...texts: Parameters<typeof patching>) => runAtOnce(patching(...texts));

const lines = (...names: readonly string[]) => names.map((name) => `${name}\n`).join('');
/** More lines than are compared in one step. */
const many = Array.from({ length: 20_000 }, (_, at) => `line ${at}`);
const ten = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10'];

test('a patch has the lines that differ, with three lines of context around them', (t) => {
  const after = ten.map((line) => (line === '5' ? 'five' : line));
  t.is(
    toPatch('rules/d.yaml', lines(...ten), lines(...after)),
    '--- a/rules/d.yaml\n+++ b/rules/d.yaml\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n',
  );
  t.is(toPatch('d.yaml', 'same\n', 'same\n'), '');
});

test('git applies the patch to the same result, at every edge of a file', (t) => {
  const folder = createTemporaryFolder(t);
  const pairs = [
    [lines(...ten), lines('0', ...ten)],
    [lines(...ten), lines(...ten, '11')],
    [lines(...ten), lines(...ten.slice(1, -1))],
    [lines(...ten), lines('1', 'x', '3', '4', '5', '6', '7', '8', 'y', '10')],
    [lines(...ten), lines(...ten).trimEnd()],
    [lines(...ten).trimEnd(), lines(...ten)],
    ['a', 'b'],
    ['a\r\nb\r\n', 'a\r\nc\r\n'],
    ['a\na\na\na\n', 'a\na\n'],
    ['', 'a\n'],
    ['a\n', ''],
    ['a\nb', 'b'],
    ['b', 'a\nb'],
    ['ab\nb\n', 'b\nb\n'],
    ['\n\n\n', '\n'],
    [lines(...many), lines(...many, '1')],
    [lines('0', ...many), lines(...many)],
    [lines(...many, 'x', ...many), lines(...many, 'y', ...many)],
    [
      lines(...many),
      lines(...many)
        .replaceAll('line', 'new line')
        .trimEnd(),
    ],
  ] as const;
  for (const [before, after] of pairs) {
    writeFileSync(join(folder, 'd.yaml'), before);
    const input = toPatch('d.yaml', before, after);
    execFileSync('git', ['apply', '--whitespace=nowarn', '-'], { cwd: folder, input });
    t.is(readFileSync(join(folder, 'd.yaml'), 'utf8'), after, input);
  }
});
