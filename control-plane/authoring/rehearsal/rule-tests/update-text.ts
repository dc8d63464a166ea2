// Replaces expected values with actual ones in the text of a test file. Only the values change: layout, quotes and
// comments stay.
import { isScalar, parseDocument, Scalar, visit } from 'yaml';
import { toScalarValue } from '../../../../shared/rules/yaml/yaml-node.ts';
import type { Failure } from './run-tests.ts';

export interface UpdatedText {
  readonly text: string;
  /** The failures that could not be written: there was no answer, or one value stands for several different answers. */
  readonly left: readonly Failure[];
}

export function updateText(text: string, failures: readonly Failure[]): UpdatedText {
  const byOffset = Map.groupBy(failures, ({ offset }) => offset);
  const left: Failure[] = [];
  const edits: Edit[] = [];
  const scalars = findScalars(text);
  for (const [offset, group] of byOffset) {
    const [{ actual } = { actual: undefined }, ...others] = group;
    const scalar = scalars.get(offset);
    const isClear = others.every((other) => other.actual === actual);
    if (actual === undefined || scalar === undefined || !isClear) left.push(...group);
    else edits.push(toEdit(text, actual, scalar));
  }
  let updated = text;
  for (const { from, to, written } of edits.sort((a, b) => b.from - a.from)) {
    updated = updated.slice(0, from) + written + updated.slice(to);
  }
  return { text: updated, left };
}

interface Edit {
  readonly from: number;
  readonly to: number;
  readonly written: string;
}

function findScalars(yaml: string): ReadonlyMap<number, Scalar> {
  const found = new Map<number, Scalar>();
  visit(
    parseDocument(yaml, { version: '1.1', schema: 'failsafe', uniqueKeys: false }),
    (_, node) => {
      if (isScalar(node) && node.range) found.set(node.range[0], node);
    },
  );
  return found;
}

function toEdit(text: string, actual: string, { range, type }: Scalar): Edit {
  const [from, to] = range ?? [0, 0];
  const written = quote(actual, type);
  if (from < to) return { from, to, written };
  // A key without a value.
  const before = /\s/.test(text.charAt(from - 1)) ? '' : ' ';
  const after = text.charAt(to) === '#' ? ' ' : '';
  return { from, to, written: before + written + after };
}

/** Quotes a value as before; a plain value is quoted where YAML would parse it as something else. */
function quote(value: string, type: string | undefined): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what has to be escaped
  if (type === Scalar.QUOTE_DOUBLE || /[\0-\x1f\x7f]/.test(value)) return JSON.stringify(value);
  const isPlain = /^\d+$/.test(value) || /^[A-Za-z0-9][\w./*-]*$/.test(value);
  const isText = /^\d+$/.test(value) || toScalarValue(value).kind === 'text';
  if (type !== Scalar.QUOTE_SINGLE && isPlain && isText) return value;
  return `'${value.replaceAll("'", "''")}'`;
}
