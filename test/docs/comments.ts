// Reads the comments of a file, for tests of what they cite.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

export interface Comment {
  readonly file: string;
  readonly line: number;
  /** The lines of a block are joined by blanks, without comment markers. */
  readonly text: string;
  /** The line below the comment. */
  readonly below: string;
}

/** Comments on lines of their own; those of one block are joined. */
export function commentsOf(file: string): Comment[] {
  const comments: Comment[] = [];
  let before = -1;
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  for (const [at, line] of lines.entries()) {
    const [, own] = /^\s*(?:\/\/|\/\*\*?|\*(?!\/)|#)(.*?)(?:\*\/)?\s*$/.exec(line) ?? [];
    if (own === undefined) continue;
    const below = lines[at + 1] ?? '';
    const last = comments.at(-1);
    if (last !== undefined && before === at - 1) {
      comments[comments.length - 1] = { ...last, text: `${last.text} ${own.trim()}`, below };
    } else comments.push({ file, line: at + 1, text: own.trim(), below });
    before = at;
  }
  return comments;
}

/** Notes of recorded cases, which have no comments. */
export function notesOf(file: string): Comment[] {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  return lines.flatMap((line, at) =>
    [...line.matchAll(/"note": "(.*?)"/g)].map(([, text = '']) => ({
      file,
      line: at + 1,
      text,
      below: lines[at + 1] ?? '',
    })),
  );
}
