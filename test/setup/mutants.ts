// Small defects in a source, as somebody could make them: each is one replacement in one line. By text, without
// a parser, so that a mutant may be none: one that means the same, or that is no program, which a test notices.

export interface Mutant {
  /** Counted from 1. */
  readonly line: number;
  readonly before: string;
  readonly after: string;
}

type Operator = readonly [pattern: RegExp, replace: (found: string) => string];

const swaps: readonly (readonly [string, string])[] = [
  [' < ', ' <= '],
  [' > ', ' >= '],
  [' === ', ' !== '],
  [' && ', ' || '],
  [' + ', ' - '],
  [' * ', ' / '],
  ['true', 'false'],
  ['.some(', '.every('],
  ['Math.min(', 'Math.max('],
];

const operators: readonly Operator[] = [
  ...swaps.flatMap(([one, other]): Operator[] => [
    [toPattern(one), () => other],
    [toPattern(other), () => one],
  ]),
  // A negation is dropped.
  [/(?<=[\s(])!(?=[\w(])/g, () => ''],
  // One more, or one less.
  [/(?<![\w.'])\d[\d_]*(?![\w.'])/g, (found) => String(Number(found.replaceAll('_', '')) + 1)],
  [/(?<![\w.'])[1-9][\d_]*(?![\w.'])/g, (found) => String(Number(found.replaceAll('_', '')) - 1)],
  // A condition that never holds, or always does.
  [/(?<=\bif \()(?=.*\) )/g, () => 'false && '],
  [/(?<=\bif \()(?=.*\) )/g, () => 'true || '],
  // A statement is missing.
  [
    /^\s*(?!return|throw|const|let|break|continue|case|type|import|export|readonly|yield)[\w.?[\]]+(?:\(.*\)| [+-]?= .*|\+\+|--);$/g,
    () => '',
  ],
  [/^\s*if \(.*\) (?:return|continue|break)\b.*;$/g, () => ''],
];

/** Of all lines with code; types, comments, imports and what is inside of quotes stay as they are. */
export function findMutants(source: string): Mutant[] {
  const mutants: Mutant[] = [];
  let isInType = false;
  for (const [index, text] of source.split('\n').entries()) {
    if (/^(?:export )?(?:interface|type) .*[{|=]$/.test(text)) isInType = true;
    if (!isInType && !/^\s*(?:\/\/|\/\*|\*|import |export type |type )/.test(text)) {
      mutants.push(...findInLine(text).map((after) => ({ line: index + 1, before: text, after })));
    }
    if (/^\}|^$/.test(text)) isInType = false;
  }
  return mutants;
}

function findInLine(text: string): string[] {
  const found = operators.flatMap(([pattern, replace]) =>
    [...text.matchAll(pattern)]
      .filter(({ index, 0: { length } }) => length === text.length || !isQuoted(text, index))
      .map(
        ({ index, 0: part }) =>
          text.slice(0, index) + replace(part) + text.slice(index + part.length),
      ),
  );
  return [...new Set(found)];
}

/** Whether an odd number of quotes of a kind is before it. */
function isQuoted(text: string, index: number): boolean {
  const before = text.slice(0, index);
  return ["'", '`'].some((quote) => before.split(quote).length % 2 === 0);
}

function toPattern(text: string): RegExp {
  const escaped = text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(/^\w+$/.test(text) ? `\\b${escaped}\\b` : escaped, 'g');
}
