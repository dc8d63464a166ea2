// A rule as its author wrote it: its lines of the file, without their indentation. Pure.

/** The most lines of one rule; a longer one is cut, and says so. */
const maxLines = 80;

/** Lines of a text, counted from 1, both included. */
export interface LineRange {
  readonly first: number;
  readonly last: number;
}

/** From `line` (counted from 1) to the end of the list item that begins there, with the comments right above it. Undefined
 * where the file has no such line. */
export function findRuleLines(text: string, line: number): LineRange | undefined {
  const lines = text.split(/\r?\n/);
  const own = lines[line - 1];
  if (own === undefined) return undefined;
  const indent = indentOf(own);
  let start = line - 1;
  while (start > 0 && isComment(lines[start - 1], indent)) start--;
  let end = line;
  while (end < lines.length && isInside(lines[end] ?? '', indent)) end++;
  while (end > line && (lines[end - 1] ?? '').trim() === '') end--;
  return { first: start + 1, last: end };
}

/** The lines of the rule, for people. */
export function cutRule(text: string, line: number): string | undefined {
  const range = findRuleLines(text, line);
  if (range === undefined) return undefined;
  const lines = text.split(/\r?\n/);
  const indent = indentOf(lines[line - 1] ?? '');
  const own = lines
    .slice(range.first - 1, range.last)
    .map((each) => each.slice(Math.min(indent, indentOf(each))));
  const left = own.length - maxLines;
  const shown = left > 0 ? [...own.slice(0, maxLines), `# ... and ${left} more lines`] : own;
  return shown.join('\n');
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function isComment(line: string | undefined, indent: number): boolean {
  if (line === undefined) return false;
  return line.trimStart().startsWith('#') && indentOf(line) === indent;
}

/** Empty lines and what is further to the right. */
function isInside(line: string, indent: number): boolean {
  return line.trim() === '' || indentOf(line) > indent;
}
