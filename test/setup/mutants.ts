// Generates small, plausible defects in a source: each replaces text in one line. Invalid programs and changes of types
// only are excluded; others may be equivalent to the original.
import { stripTypeScriptTypes } from 'node:module';

export interface Mutant {
  /** Counted from 1. */
  readonly line: number;
  /** The offset of the replaced text in the source. */
  readonly offset: number;
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

const number = /(?<![\w.'])\d[\d_]*(?![\w.'])/g;
/** Changing such a number by one is no defect: no test could notice. */
const spanOrSize = /(?:Ms|Seconds|Bytes)\b.*(?<![\w.'])[1-9][\d_]{2,}(?![\w.'])/;
/** For two equal values, the result is the same with either comparison. */
const lesserOrGreater = /([\w.]+) [<>]=? ([\w.]+) \? (?:\1 : \2|\2 : \1)\b/;

const toNumber = (text: string): number => Number(text.replaceAll('_', ''));
const halfAndDouble: readonly Operator[] = [
  [number, (found) => String(toNumber(found) * 2)],
  [number, (found) => String(Math.floor(toNumber(found) / 2))],
];
const oneMoreAndOneLess: readonly Operator[] = [
  [number, (found) => String(toNumber(found) + 1)],
  [number, (found) => String(Math.max(0, toNumber(found) - 1))],
];

const operators: readonly Operator[] = [
  ...swaps.flatMap(([one, other]): Operator[] => [
    [toPattern(one), () => other],
    [toPattern(other), () => one],
  ]),
  // A negation is removed.
  [/(?<=[\s(])!(?=[\w(])/g, () => ''],
  // A condition is always false, or always true.
  [/(?<=\bif \()(?=.*\) )/g, () => 'false && '],
  [/(?<=\bif \()(?=.*\) )/g, () => 'true || '],
  // A statement is removed.
  [
    /^\s*(?!return|throw|const|let|break|continue|case|type|import|export|readonly|yield)[\w.?[\]]+(?:\(.*\)| [+-]?= .*|\+\+|--);$/g,
    () => '',
  ],
  [/^\s*if \(.*\) (?:return|continue|break)\b.*;$/g, () => ''],
];

/** For all lines with code; types, comments, imports and text in quotes are not changed. */
export function findMutants(source: string): Mutant[] {
  const unchanged = stripTypes(source);
  const mutants: Mutant[] = [];
  let begin = 0;
  let isInConstructor = false;
  for (const [index, text] of source.split('\n').entries()) {
    if (/^ {2}\w/.test(text)) isInConstructor = text.startsWith('  constructor(');
    const isAnyway = isInConstructor && /^\s*this\.\w+ = undefined;$/.test(text);
    if (!isAnyway && !/^\s*(?:\/\/|\/\*|\*|import )/.test(text)) {
      const end = begin + text.length;
      for (const after of findInLine(text)) {
        const stripped = stripTypes(source.slice(0, begin) + after + source.slice(end));
        if (stripped === undefined || stripped === unchanged) continue;
        const offset = begin + (after === '' ? text.search(/\S/) : differenceOf(text, after));
        mutants.push({ line: index + 1, offset, before: text, after });
      }
    }
    begin += text.length + 1;
  }
  return mutants;
}

/** As Node runs it; undefined for an invalid program. */
function stripTypes(source: string): string | undefined {
  try {
    return stripTypeScriptTypes(source).replaceAll(/\s+/g, ' ');
  } catch {
    return undefined;
  }
}

function differenceOf(one: string, other: string): number {
  let index = 0;
  while (one[index] === other[index]) index += 1;
  return index;
}

function findInLine(text: string): string[] {
  const isEqualAnyway = lesserOrGreater.test(text);
  const ofNumbers = spanOrSize.test(text) ? halfAndDouble : oneMoreAndOneLess;
  const found = [...operators, ...ofNumbers].flatMap(([pattern, replace]) =>
    [...text.matchAll(pattern)]
      .filter(({ index, 0: { length } }) => length === text.length || !isQuoted(text, index))
      .filter(({ 0: part }) => !(isEqualAnyway && /^ [<>]=? $/.test(part)))
      .map(
        ({ index, 0: part }) =>
          text.slice(0, index) + replace(part) + text.slice(index + part.length),
      ),
  );
  return [...new Set(found)].filter((after) => after !== text);
}

/** Whether an odd number of quotes of a kind precedes it. */
function isQuoted(text: string, index: number): boolean {
  const before = text.slice(0, index);
  return ["'", '`'].some((quote) => before.split(quote).length % 2 === 0);
}

function toPattern(text: string): RegExp {
  const escaped = text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(/^\w+$/.test(text) ? `\\b${escaped}\\b` : escaped, 'g');
}
