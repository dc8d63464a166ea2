// Finds what is written as in other languages, or left by other programs: comments with `//`, marks of a merge conflict,
// keys with `=`.
import { toExcerpt } from '../../text-excerpt.ts';

const commentSign = /(?:^|\s)(\/\/|\/\*)(?=\s)/;

/** A comment as in other languages: its sign, and the text before it. */
export function findForeignComment(text: string) {
  const match = commentSign.exec(text);
  const sign = match?.[1];
  if (match === null || sign === undefined) return undefined;
  return { sign, before: text.slice(0, match.index).trim() };
}

/** The hint for a value with such a comment behind it. */
export function describeForeignComment(text: string): string | undefined {
  const comment = findForeignComment(text);
  return comment && `a comment begins with ' #'; write '${toExcerpt(comment.before)}' without it`;
}

const conflictMark = /^(?:<{7}|\|{7}|={7}|>{7})(?=[ \r\n]|$)/m;

/** Where the first mark of a merge conflict begins a line. */
export function findConflictMark(text: string): number | undefined {
  return conflictMark.exec(text)?.index;
}

export const conflictHint = 'resolve the conflict: keep one side, and remove the lines of marks';

/** The hint for a line that is not YAML; undefined where no other language is recognized. */
export function describeForeignLine(line: string): string | undefined {
  if (/^\s*(?:\/\/|\/\*|\*\/|--(?!-)|;|<!--)/.test(line)) return "a comment begins with '#'";
  if (findForeignComment(line) !== undefined) return "a comment begins with ' #'";
  const assigned = /^ *(?:- +)?([A-Za-z_]{1,60}) *(?:=>|:=|=) *(\S.{0,200})$/.exec(line);
  const [, key, value] = assigned ?? [];
  if (key !== undefined && value !== undefined) {
    const plain = value.trimEnd().replace(/[;,]$/, '');
    return `a key is followed by ': ', not by '=': write '${key}: ${toExcerpt(plain)}'`;
  }
  return /^ *[A-Za-z_]{1,60} *\{ *$/.test(line)
    ? "write ':' after the key, and what it holds below, without braces"
    : undefined;
}
