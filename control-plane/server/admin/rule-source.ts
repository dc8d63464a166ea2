// A rule as its author wrote it: its lines of the file, without their indentation. Pure, and in steps.

/** The most lines of one rule; a longer one is cut, and marked as such. */
const maxLines = 80;
/** Lines read per step. */
const linesAtOnce = 1_000;

/** Lines of a text, counted from 1, inclusive. */
export interface LineRange {
  readonly first: number;
  readonly last: number;
}

interface FoundLines extends LineRange {
  /** The offsets of the first line and of the line of the rule itself. */
  readonly start: number;
  readonly own: number;
}

/** The text from `line` (counted from 1) to the end of the list item that begins there, with the comments directly
 * above it. Undefined if the file has no such line. */
export function* findingRuleLines(
  text: string,
  line: number,
): Generator<void, FoundLines | undefined> {
  let own = 0;
  for (let number = 1; number < line; number++) {
    const next = nextLine(text, own);
    if (next === undefined) return undefined;
    own = next;
    if (number % linesAtOnce === 0) yield;
  }
  const indent = indentOf(readLine(text, own));
  let [first, start] = [line, own];
  for (let at = lineBefore(text, own); at !== undefined; at = lineBefore(text, at)) {
    if (!isComment(readLine(text, at), indent)) break;
    [first, start] = [first - 1, at];
    if (first % linesAtOnce === 0) yield;
  }
  let last = line;
  let number = line;
  for (let at = nextLine(text, own); at !== undefined; at = nextLine(text, at)) {
    const each = readLine(text, at);
    if (!isInside(each, indent)) break;
    number++;
    if (each.trim() !== '') last = number;
    if (number % linesAtOnce === 0) yield;
  }
  return { first, last, start, own };
}

/** The lines of the rule. */
export function* cuttingRule(text: string, line: number): Generator<void, string | undefined> {
  const found = yield* findingRuleLines(text, line);
  if (found === undefined) return undefined;
  const { first, last, start, own } = found;
  const indent = indentOf(readLine(text, own));
  const count = last - first + 1;
  const shown: string[] = [];
  let at: number | undefined = start;
  while (at !== undefined && shown.length < Math.min(count, maxLines)) {
    const each = readLine(text, at);
    shown.push(each.slice(Math.min(indent, indentOf(each))));
    at = nextLine(text, at);
  }
  if (count > maxLines) shown.push(`# ... and ${count - maxLines} more lines`);
  return shown.join('\n');
}

/** The start of the line after the one at `start`. */
function nextLine(text: string, start: number): number | undefined {
  const lineBreak = text.indexOf('\n', start);
  return lineBreak === -1 ? undefined : lineBreak + 1;
}

function lineBefore(text: string, start: number): number | undefined {
  if (start === 0) return undefined;
  return start === 1 ? 0 : text.lastIndexOf('\n', start - 2) + 1;
}

function readLine(text: string, start: number): string {
  const lineBreak = text.indexOf('\n', start);
  const line = text.slice(start, lineBreak === -1 ? undefined : lineBreak);
  return line.endsWith('\r') && lineBreak !== -1 ? line.slice(0, -1) : line;
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}

function isComment(line: string, indent: number): boolean {
  return line.trimStart().startsWith('#') && indentOf(line) === indent;
}

/** Empty lines, and lines that are indented further. */
function isInside(line: string, indent: number): boolean {
  return line.trim() === '' || indentOf(line) > indent;
}
