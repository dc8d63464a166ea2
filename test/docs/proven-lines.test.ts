// Each line of three tables is proven by a test with a comment above it that quotes its cell: `Proof of PAGE: CELL`; or
// by a scenario with such a line in its header.
import { readFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import test from 'ava';
import { listFiles } from '../support/listed-files.ts';
import { commentsOf, notesOf } from './comments.ts';

const root = join(import.meta.dirname, '..', '..');

/** The lines of a scenario's header. */
function headOf(file: string) {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  return lines.flatMap((text, at) =>
    text.startsWith('# ') ? [{ file, line: at + 1, text: text.slice(2), below: 'test(' }] : [],
  );
}

const readers = { '.json': notesOf, '.txt': headOf, '.ts': commentsOf };
const proofs = listFiles(
  ...['*.test.ts', 'test/contract/*.ts', 'test/conformance/cases/*.json'],
  '*.txt',
)
  .flatMap((file) => readers[extname(file) as keyof typeof readers](file))
  .flatMap(({ file, line, text, below }) =>
    text.split(/ (?=Proof of \S+\.md: )/).flatMap((part) => {
      const [, page, cell] = /^Proof of (\S+\.md): (.*)$/.exec(part) ?? [];
      return cell === undefined ? [] : [{ page, cell, position: `${file}:${line}`, below }];
    }),
  );

/** The cells of one column, without its heading. An empty cell continues the one above. */
function readColumn(text: string, column: number): string[] {
  const lines = text.split('\n');
  return lines
    .filter((line, at) => line.startsWith('| ') && !lines[at + 1]?.startsWith('|--'))
    .map((line) => line.split(/(?<!\\) \| /)[column]?.replace(/^\| | \|$/g, '') ?? '');
}

/** The page, the column, and the marks around its table. */
const tables = [
  ['worker/docs/migrating.md', 0, 'differences:'],
  ['control-plane/docs/operating.md', 0, 'rollout:'],
  ['SECURITY.md', 1, 'rights:'],
] as const;
for (const [page, column, mark] of tables) {
  const text = readFileSync(join(root, page), 'utf8');
  const [, section] = text.split(new RegExp(`<!-- ${mark}(?:begin|end) -->`));
  const cells = readColumn(section ?? '', column);
  const own = proofs.filter((proof) => proof.page === basename(page));

  test(`each line of ${page} is proven by a test`, (t) => {
    t.true(cells.length > 10, `${cells.length} lines`);
    t.deepEqual(
      cells.filter((cell) => !own.some((proof) => proof.cell === cell)),
      [],
    );
  });

  test(`each proof of ${page} quotes one of its lines and is directly above a test`, (t) => {
    const isTest = /\b(?:test|check)\w*(?:\.serial)?\(|\w+Test\(|"(?:env|config|steps)":/;
    t.deepEqual(
      own
        .filter(({ cell, below }) => !cells.includes(cell) || !isTest.test(below))
        .map(({ position, cell }) => `${position}: ${cell}`),
      [],
    );
  });
}
