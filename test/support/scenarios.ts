// Tests as reviewed text: the commands, and every line of their output. `=== TITLE` begins a test, `-- NAME --` a file
// of its folder (before the first test: of every test's folder), and `$ WORDS` runs a command. The output follows, with
// `! ` before each line on standard error, and `exit N` if N is not 0. A line `...` matches any lines, and `...` within
// a line any text. REWRITE=1 writes the current output into the file: review the difference before committing
// it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExecutionContext, TestFn } from 'ava';
import { createTemporaryFolder } from './temporary-folder.ts';

export interface Outcome {
  readonly out: string;
  readonly err?: string;
  readonly code?: number;
}

/** A word `./NAME` is a path in the folder, which is `.` again in the output. */
export type RunWords = (
  words: readonly string[],
  of: { readonly t: ExecutionContext; readonly folder: string },
) => Outcome | Promise<Outcome>;

interface Block {
  /** `=== ...`, `-- ... --` or `$ ...`. */
  readonly head: string;
  readonly line: number;
  readonly body: readonly string[];
}

const isUpdated = process.env['REWRITE'] === '1';
const isHead = (line: string) => /^(?:=== |-- .+ --$|\$ |\$$)/.test(line);

/** A test for each scenario of the file. */
export function testScenarios(test: TestFn, file: URL, run: RunWords): void {
  const path = fileURLToPath(file);
  const blocks = readBlocks(readFileSync(path, 'utf8').split('\n'));
  const answers = new Map<Block, readonly string[]>();
  const starts = blocks.flatMap(({ head }, index) => (head.startsWith('=== ') ? [index] : []));
  const shared = blocks.slice(0, starts[0]).filter(({ head }) => isHead(head));
  for (const [index, start] of starts.entries()) {
    const steps = [...shared, ...blocks.slice(start + 1, starts[index + 1])];
    test(blocks[start]?.head.slice(4) ?? '', async (t) => {
      const folder = createTemporaryFolder(t);
      for (const block of steps) {
        const { head, line, body } = block;
        if (head.startsWith('-- ')) {
          const name = join(folder, head.slice(3, -3));
          mkdirSync(dirname(name), { recursive: true });
          writeFileSync(name, body.map((each) => `${each}\n`).join(''));
          continue;
        }
        const words = toWords(head.slice(2)).map((word) =>
          word.replace(/(?<=^|=)\.(?=\/|$)/, folder),
        );
        const answer = toLines(await run(words, { t, folder }), folder);
        answers.set(block, matches(body, answer) ? body : answer);
        if (answers.get(block) === body || isUpdated) t.pass();
        else
          t.is(
            answer.join('\n'),
            body.join('\n'),
            `${path}:${line} ${head}: REWRITE=1 writes what has changed`,
          );
      }
    });
  }
  if (isUpdated) test.after.always(() => writeFileSync(path, toText(blocks, answers)));
}

/** The text before the first heading explains the file. */
function readBlocks(lines: readonly string[]): Block[] {
  const heads = [0, ...lines.flatMap((line, index) => (isHead(line) && index > 0 ? [index] : []))];
  return heads.map((from, index) => {
    const body = lines.slice(from + 1, heads[index + 1]);
    while (body.at(-1) === '') body.pop();
    return { head: lines[from] ?? '', line: from + 1, body };
  });
}

function toText(blocks: readonly Block[], answers: Map<Block, readonly string[]>): string {
  const texts = blocks.map((block) => [block.head, ...(answers.get(block) ?? block.body)]);
  return texts
    .map((lines, index) => {
      const isLast = blocks[index + 1]?.head.startsWith('=== ') ?? false;
      return lines.map((line) => `${line}\n`).join('') + (isLast ? '\n' : '');
    })
    .join('');
}

/** Split like in a shell: blanks between quotes belong to a word. */
function toWords(text: string): string[] {
  return (text.match(/(?:'[^']*'|[^\s'])+/g) ?? []).map((word) => word.replaceAll("'", ''));
}

function toLines({ out, err = '', code = 0 }: Outcome, folder: string): string[] {
  const split = (text: string) => text.replaceAll(folder, '.').replace(/\n*$/, '').split('\n');
  return [
    ...(out === '' ? [] : split(out)),
    ...(err === '' ? [] : split(err).map((line) => `! ${line}`)),
    ...(code === 0 ? [] : [`exit ${code}`]),
  ];
}

function matches(expected: readonly string[], actual: readonly string[]): boolean {
  const pattern = expected.map((line) =>
    line === '...' ? '(?:.*\n)*?' : `${line.split('...').map(RegExp.escape).join('.*')}\n`,
  );
  return new RegExp(`^${pattern.join('')}$`).test(actual.map((line) => `${line}\n`).join(''));
}
