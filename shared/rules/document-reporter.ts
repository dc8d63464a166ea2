// Collects the problems of documents: without repeats, bounded in number, and with offsets turned into
// lines and columns.
import { toCountText } from '../count-text.ts';
import { createBoundedNearestWord, type nearestWord } from '../nearest-word.ts';
import { type Problem, problemOf } from './problem.ts';
import { type ProblemRule, type Severity, severityOf } from './problem-rule.ts';

export interface ProblemList {
  /** A problem equal to an earlier one in place and text is dropped: an alias repeats its anchor. */
  add(problem: Problem): void;
  readonly hasErrors: boolean;
  /**
   * In the order of `add`. The first hundred errors are kept, and the first hundred of each kind of
   * warning or note, since a kind may be allowed and must not hide the others. A last problem says
   * how many more there were.
   */
  toProblems(): Problem[];
}

const maxOfGroup = 100;

/** Problems that are kept and counted together. */
interface Group {
  readonly severity: Severity;
  readonly rule: ProblemRule;
  count: number;
}

/** `file` names the source in the line about what was left out. */
export function createProblemList(file: string): ProblemList {
  const kept: Problem[] = [];
  const seen = new Set<string>();
  const groups = new Map<string, Group>();
  return {
    add(problem) {
      const { severity, line, column, message } = problem;
      const rule = severity === 'error' ? 'other' : problem.rule;
      const group = groups.get(`${severity} ${rule}`) ?? { severity, rule, count: 0 };
      if (group.count < maxOfGroup) {
        const place = line === undefined ? problem.path : `${line}:${column}`;
        const identity = `${problem.file}\0${place}\0${message}`;
        if (seen.has(identity)) return;
        seen.add(identity);
        kept.push(problem);
      }
      group.count++;
      groups.set(`${severity} ${rule}`, group);
    },
    get hasErrors() {
      return groups.has('error other');
    },
    toProblems() {
      const left = [...groups.values()].filter(({ count }) => count > maxOfGroup);
      const rests = left.map(({ severity, rule, count }) => {
        const message = `and ${toCountText(count - maxOfGroup, `more ${severity}`)}`;
        return problemOf(severity, rule, file, message, 'repair these first, then look again');
      });
      return [...kept, ...rests];
    },
  };
}

export interface DocumentReporter {
  /** `offset` is undefined for what concerns the document as a whole. */
  error(
    rule: ProblemRule,
    offset: number | undefined,
    path: string,
    message: string,
    hint?: string,
  ): void;
  /** Tells a warning or a note, as its kind is. */
  advise: DocumentReporter['error'];
  /** Undefined when the source has no lines. */
  position(offset: number): Position | undefined;
  /** `line:column`, or the path in a source without lines, to name another place in a hint. */
  place(offset: number): string;
  /** `nearestWord`, as long as the document has not used up its comparisons. */
  readonly nearestWord: typeof nearestWord;
  readonly hasErrors: boolean;
  toProblems(): Problem[];
}

/** Comparing names takes time, and a document can hold a hundred thousand slips. */
const maxNameComparisons = 2_000;

export function createDocumentReporter(text: string, file: string): DocumentReporter {
  const position = createPositions(text);
  return createReporter(file, position, (offset) => {
    const { line, column } = position(offset);
    return `${line}:${column}`;
  });
}

/** For a source with its own kind of places. */
export function createReporter(
  file: string,
  position: DocumentReporter['position'],
  place: DocumentReporter['place'],
): DocumentReporter {
  const list = createProblemList(file);

  function add(
    severity: Severity,
    rule: ProblemRule,
    offset: number | undefined,
    path: string,
    message: string,
    hint?: string,
  ): void {
    const at = offset === undefined ? undefined : position(offset);
    list.add({ ...problemOf(severity, rule, file, message, hint), path, ...at });
  }

  return {
    error: (...problem) => add('error', ...problem),
    advise: (...problem) => add(severityOf(problem[0]), ...problem),
    position,
    place,
    nearestWord: createBoundedNearestWord(maxNameComparisons),
    get hasErrors() {
      return list.hasErrors;
    },
    toProblems: list.toProblems,
  };
}

export interface Position {
  /** 1-based. */
  readonly line: number;
  /** 1-based, in UTF-16 code units. */
  readonly column: number;
  /** Undefined for a line that is too long to keep. */
  readonly sourceLine: string | undefined;
}

/** A longer line is generated or hostile; a hundred problems must not each keep it. */
const maxSourceLineLength = 16_384;

/** Turns offsets into positions; the lines are found with the first one. */
export function createPositions(text: string): (offset: number) => Position {
  let lineStarts: readonly number[] | undefined;
  return (offset) => {
    lineStarts ??= findLineStarts(text);
    const index = lastAtOrBelow(lineStarts, offset);
    const start = lineStarts[index] ?? 0;
    let end = (lineStarts[index + 1] ?? text.length + 1) - 1;
    if (text[end - 1] === '\r') end--;
    return Object.freeze({
      line: index + 1,
      column: offset - start + 1,
      sourceLine: end - start > maxSourceLineLength ? undefined : text.slice(start, end),
    });
  };
}

function findLineStarts(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
}

function lastAtOrBelow(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}
