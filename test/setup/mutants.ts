// Small defects in a source, as somebody could make them: each is one replacement in one line, by text. Those that
// are no program or change types alone are none; others may mean the same as what they replace.
import { stripTypeScriptTypes } from 'node:module';

export interface Mutant {
  /** Counted from 1. */
  readonly line: number;
  /** Of what is replaced, from the start of the source. */
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
/** One more of such a number is no defect: nobody could tell. */
const spanOrSize = /(?:Ms|Seconds|Bytes)\b.*(?<![\w.'])[1-9][\d_]{2,}(?![\w.'])/;
/** The same for two that are equal, whichever is taken. */
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
  // A negation is dropped.
  [/(?<=[\s(])!(?=[\w(])/g, () => ''],
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

/** As Node runs it; undefined when it is no program. */
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

/** Whether an odd number of quotes of a kind is before it. */
function isQuoted(text: string, index: number): boolean {
  const before = text.slice(0, index);
  return ["'", '`'].some((quote) => before.split(quote).length % 2 === 0);
}

function toPattern(text: string): RegExp {
  const escaped = text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
  return new RegExp(/^\w+$/.test(text) ? `\\b${escaped}\\b` : escaped, 'g');
}
