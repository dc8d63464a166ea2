// Finds a key that begins in another column than the keys around it. YAML reports this as various syntax errors, often
// on the line before.
import { toExcerpt } from '../../text-excerpt.ts';

interface KeyPosition {
  readonly name: string;
  /** Both 1-based. */
  readonly line: number;
  readonly column: number;
  /** Whether a `-` precedes it. */
  readonly isFirst: boolean;
  /** Whether a value follows its colon, so that nothing is nested below it. */
  readonly hasValue: boolean;
}

/** A longer line is cut. */
const maxLineLength = 1_000;
/** How many lines after the error are searched. */
const maxLinesBelow = 10;

/**
 * The hint for a syntax error in `line`, 1-based: the mistake is there or at the next key. Undefined when all keys
 * begin in valid columns.
 */
export function describeWrongColumn(text: string, line: number): string | undefined {
  const open: KeyPosition[] = [];
  for (const [index, content] of text.split('\n', line + maxLinesBelow).entries()) {
    const key = readKey(content.slice(0, maxLineLength), index + 1);
    if (key === undefined) continue;
    const left = open.filter(({ column }) => column > key.column);
    open.splice(open.length - left.length);
    const above = open.at(-1);
    if (key.line >= line && !key.isFirst && above !== undefined) {
      const isAligned = above.column === key.column;
      const isNested = above.column < key.column && !above.hasValue && left.length === 0;
      if (!isAligned && !isNested) return describe(key, nearest(key, [above, ...left]));
      if (key.line > line) return undefined;
    }
    if (above?.column === key.column) open.pop();
    open.push(key);
  }
  return undefined;
}

function readKey(content: string, line: number): KeyPosition | undefined {
  const [before, spaces = '', dashes = '', name = ''] =
    /^( *)((?:- +)*)([\w.-]+):(?=\s|$)/.exec(content) ?? [];
  if (before === undefined) return undefined;
  const rest = content.slice(before.length).trim();
  const hasValue = rest !== '' && !rest.startsWith('#');
  const column = spaces.length + dashes.length + 1;
  return { name, line, column, isFirst: dashes !== '', hasValue };
}

function nearest(
  { column }: KeyPosition,
  positions: readonly KeyPosition[],
): KeyPosition | undefined {
  const distance = (position: KeyPosition) => Math.abs(position.column - column);
  return [...positions].sort((a, b) => distance(a) - distance(b) || b.column - a.column)[0];
}

function describe(key: KeyPosition, sibling: KeyPosition | undefined): string | undefined {
  if (sibling === undefined) return undefined;
  const position = `${key.line}:${key.column}`;
  const target = `column ${sibling.column}, below '${toExcerpt(sibling.name)}' at ${sibling.line}:${sibling.column}`;
  return `'${toExcerpt(key.name)}' at ${position} begins at the wrong column: move it to ${target}`;
}
