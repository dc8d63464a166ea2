// Finds syntax of other languages or remains of other programs: comments with `//`, marks of a merge conflict, keys
// with `=`, and placeholders that a template engine should have replaced: `{{ .Values.limit }}`, `{% if x %}`,
// `${LIMIT}`.
import { toExcerpt } from '../../text-excerpt.ts';

const commentSign = /(?:^|\s)(\/\/|\/\*)(?=\s)/;

/** A comment of another language: its sign, and the text before it. */
export function findForeignComment(text: string) {
  const match = commentSign.exec(text);
  const sign = match?.[1];
  if (match === null || sign === undefined) return undefined;
  return { sign, before: text.slice(0, match.index).trim() };
}

/** The hint for a value that such a comment follows. */
export function describeForeignComment(text: string): string | undefined {
  const comment = findForeignComment(text);
  return comment && `a comment begins with ' #'; write '${toExcerpt(comment.before)}' without it`;
}

const conflictMark = /^(?:<{7}|\|{7}|={7}|>{7})(?=[ \r\n]|$)/m;

/** The offset of the first line that begins with a merge conflict's mark. */
export function findConflictMark(text: string): number | undefined {
  return conflictMark.exec(text)?.index;
}

export const conflictHint = 'resolve the conflict: keep one side, and remove the lines of marks';

/** The hint for a line that is not YAML; undefined if no other language is recognized. */
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
    ? "write ':' after the key, and its value below, without braces"
    : undefined;
}

const placeholder = /\{\{[^{}\n]{1,80}\}\}|\{%[^{}\n]{1,80}%\}|\$\{\w{1,80}\}/;
/** The beginning of a line up to a placeholder outside of quotes and comments. */
const beforePlaceholder = /^[^'"#\n\r\u2028\u2029]*?(?=\{\{|\{%|\$\{)/m;

export const renderHint = 'render the template first, and pass the result';

/** The first placeholder in a text. */
export function findPlaceholder(text: string): string | undefined {
  return placeholder.exec(text)?.[0];
}

/** The offset of the first placeholder outside of quotes, where it is hardly ever valid YAML. */
export function findBarePlaceholder(yaml: string): number | undefined {
  const before = beforePlaceholder.exec(yaml);
  return before === null ? undefined : before.index + before[0].length;
}
