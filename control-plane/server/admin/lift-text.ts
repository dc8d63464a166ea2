// Adds and removes rules in the text of a rules file, so that everything else stays as it is: comments, order and
// notation. Pure; the caller compares the meaning of the new text.
import type { RuleDescriptor } from '../../../shared/rules/rule-document.ts';

export interface TextChange {
  /** Rules to remove from the text. */
  readonly remove: readonly RuleDescriptor[];
  /** YAML on one line, and a comment for it. */
  readonly add: { readonly rule: string; readonly comment: string } | undefined;
  /** A rule of the list that `add` is inserted into. */
  readonly first: RuleDescriptor | undefined;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Undefined if a rule is not where it is expected. */
export function changeText(text: string, { remove, add, first }: TextChange): string | undefined {
  const lines = toLines(text);
  const edits = remove.map((rule) => toRemoval(text, lines, rule));
  if (add !== undefined) edits.push(first && toInsertion(text, lines, first, add));
  const known = edits.filter((edit) => edit !== undefined);
  if (known.length < edits.length) return undefined;
  // Changes are applied from the end; at the same offset, removals come first.
  known.sort((a, b) => b.start - a.start || b.end - a.end);
  return known.reduce(
    (changed, { start, end, text: put }) => changed.slice(0, start) + put + changed.slice(end),
    text,
  );
}

interface Line {
  readonly start: number;
  /** The offset after its line break. */
  readonly end: number;
  readonly text: string;
}

function toLines(text: string): Line[] {
  const lines: Line[] = [];
  for (let start = 0; start < text.length; ) {
    const lineBreak = text.indexOf('\n', start);
    const end = lineBreak === -1 ? text.length : lineBreak + 1;
    lines.push({ start, end, text: text.slice(start, end).replace(/\r?\n$/, '') });
    start = end;
  }
  return lines;
}

const isEmpty = ({ text }: Line) => /^\s*(?:#.*)?$/.test(text);
const indentOf = ({ text }: Line) => text.length - text.trimStart().length;

/** The index of the line with the dash of a rule that is a list item. Undefined within brackets. */
function findDash(lines: readonly Line[], rule: RuleDescriptor): number | undefined {
  const { line = 0, column = 0 } = rule.position ?? {};
  const before = lines[line - 1]?.text.slice(0, column - 1);
  if (before === undefined) return undefined;
  if (/^\s*-\s+(?:[&!]\S+\s+)*$/.test(before)) return line - 1;
  if (before.trim() !== '') return undefined;
  // The dash may be on a line of its own.
  const at = lines.findLastIndex((each, index) => index < line - 1 && !isEmpty(each));
  return /^\s*-(?:\s+[&!]\S+)*\s*(?:#.*)?$/.test(lines[at]?.text ?? '') ? at : undefined;
}

function toRemoval(text: string, lines: readonly Line[], rule: RuleDescriptor): Edit | undefined {
  const at = findDash(lines, rule);
  const dash = at === undefined ? undefined : lines[at];
  if (at === undefined || dash === undefined) return toFlowRemoval(text, lines, rule);
  let last = at;
  for (let index = at + 1; index < lines.length; index++) {
    const line = lines[index] as Line;
    if (isEmpty(line)) continue;
    if (indentOf(line) <= indentOf(dash)) break;
    last = index;
  }
  return { start: dash.start, end: lines[last]?.end ?? dash.end, text: '' };
}

/** The text to remove, including the comma before or after it. */
function toFlowRemoval(
  text: string,
  lines: readonly Line[],
  rule: RuleDescriptor,
): Edit | undefined {
  const start = offsetOf(lines, rule);
  const end = start === undefined ? undefined : findEnd(text, start);
  if (start === undefined || end === undefined) return undefined;
  const behind = /^\s*,\s*/.exec(text.slice(end))?.[0];
  if (behind !== undefined) return { start, end: end + behind.length, text: '' };
  const ahead = /,\s*$/.exec(text.slice(0, start))?.[0] ?? '';
  return { start: start - ahead.length, end, text: '' };
}

/** The offset after the brace that closes the one at `start`. */
function findEnd(text: string, start: number): number | undefined {
  const parts = /"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[{}]/gs;
  parts.lastIndex = start;
  let depth = 0;
  for (let part = parts.exec(text); part !== null; part = parts.exec(text)) {
    if (part[0] === '{') depth++;
    else if (part[0] === '}') depth--;
    if (depth === 0) return parts.lastIndex;
  }
  return undefined;
}

function offsetOf(lines: readonly Line[], { position }: RuleDescriptor): number | undefined {
  const line = position && lines[position.line - 1];
  return line && position && line.start + position.column - 1;
}

/** The insertion before all items of the list, and before the comments on the first one. */
function toInsertion(
  text: string,
  lines: readonly Line[],
  first: RuleDescriptor,
  { rule, comment }: NonNullable<TextChange['add']>,
): Edit | undefined {
  let at = findDash(lines, first);
  const dash = at === undefined ? undefined : lines[at];
  if (at === undefined || dash === undefined) {
    const start = offsetOf(lines, first);
    return start === undefined ? undefined : { start, end: start, text: `${rule}, ` };
  }
  for (let above = lines[at - 1]; above !== undefined && isEmpty(above); above = lines[at - 1])
    at--;
  const start = lines[at]?.start ?? dash.start;
  const lineBreak = text.includes('\r\n') ? '\r\n' : '\n';
  const indent = dash.text.slice(0, indentOf(dash));
  return { start, end: start, text: `${indent}- ${rule}  # ${comment}${lineBreak}` };
}
