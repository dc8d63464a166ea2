// Collects the problems of documents: without duplicates, bounded in number, and with lines and columns computed from
// offsets.
import { toCountText } from '../../count-text.ts';
import { createBoundedNearestWord } from '../../nearest-word.ts';
import { type Problem, problemOf } from './problem.ts';
import { type ProblemRule, type Severity, severityOf } from './problem-rule.ts';

/** Converts offsets of a source to positions. */
export interface Positions {
  /** Undefined when the source has no lines. */
  position(offset: number): Position | undefined;
  /** `line:column`, or the path in a source without lines: how a hint names another position. */
  name(offset: number): string;
}

const maxOfGroup = 100;

/** Comparing names takes time, and a document can contain a hundred thousand mistakes. */
const maxNameComparisons = 2_000;

/** Problems that are stored and counted together. */
interface Group {
  readonly severity: Severity;
  readonly rule: ProblemRule;
  count: number;
}

export class Reporter {
  readonly #file: string;
  readonly #positions: Positions | undefined;
  readonly #shown: Problem[] = [];
  readonly #seen = new Set<string>();
  readonly #groups = new Map<string, Group>();

  /** `nearestWord`, until the document has used up its comparisons. */
  readonly nearestWord = createBoundedNearestWord(maxNameComparisons);

  /** `file` names the source; without `positions` the reporter only receives problems with positions. */
  constructor(file: string, positions?: Positions) {
    this.#file = file;
    this.#positions = positions;
  }

  error(...finding: Finding): void {
    this.#report('error', ...finding);
  }

  /** Reports a warning or a note, depending on its kind. */
  advise(...finding: Finding): void {
    this.#report(severityOf(finding[0]), ...finding);
  }

  #report(severity: Severity, ...[rule, offset, path, message, hint]: Finding): void {
    const at = offset === undefined ? undefined : this.position(offset);
    const position = { file: this.#file, path, line: at?.line, column: at?.column };
    this.add({ severity, rule, ...position, message, hint, sourceLine: at?.sourceLine });
  }

  /** Adds a problem; drops it if an earlier one has the same position and text: an alias repeats its anchor. */
  add(problem: Problem): void {
    const { severity, line, column, message } = problem;
    const rule = severity === 'error' ? 'other' : problem.rule;
    const group = this.#groups.get(`${severity} ${rule}`) ?? { severity, rule, count: 0 };
    if (group.count < maxOfGroup) {
      const position = line === undefined ? problem.path : `${line}:${column}`;
      const identity = `${problem.file}\0${position}\0${message}`;
      if (this.#seen.has(identity)) return;
      this.#seen.add(identity);
      this.#shown.push(problem);
    }
    group.count++;
    this.#groups.set(`${severity} ${rule}`, group);
  }

  addAll(problems: readonly Problem[]): void {
    for (const problem of problems) this.add(problem);
  }

  position(offset: number): Position | undefined {
    return this.#positions?.position(offset);
  }

  /** As `Positions.name`. */
  positionText(offset: number): string {
    return this.#positions?.name(offset) ?? '';
  }

  get hasErrors(): boolean {
    return this.#groups.has('error other');
  }

  /**
   * The problems in the order in which they were reported. The first hundred errors are stored, and the first hundred
   * of each kind of warning or note, since a kind may be allowed and must not hide the others. A last problem states
   * how many were dropped.
   */
  toProblems(): Problem[] {
    const left = [...this.#groups.values()].filter(({ count }) => count > maxOfGroup);
    const rests = left.map(({ severity, rule, count }) => {
      const message = `and ${toCountText(count - maxOfGroup, `more ${severity}`)}`;
      return problemOf(severity, rule, this.#file, message, 'repair these first, then check again');
    });
    return [...this.#shown, ...rests];
  }
}

type Finding = readonly [
  rule: ProblemRule,
  /** Undefined for a problem of the whole document. */
  offset: number | undefined,
  path: string,
  message: string,
  hint?: string,
];

export interface Position {
  /** 1-based. */
  readonly line: number;
  /** 1-based, in UTF-16 code units. */
  readonly column: number;
  /** Undefined for a line that is too long to store. */
  readonly sourceLine: string | undefined;
}

/** A longer line is generated or hostile; a hundred problems must not each store it. */
const maxSourceLineLength = 16_384;

export function createTextReporter(file: string, text: string): Reporter {
  const position = createPositions(text);
  const name = (offset: number) => {
    const { line, column } = position(offset);
    return `${line}:${column}`;
  };
  return new Reporter(file, { position, name });
}

/** Converts offsets to positions; the first call finds the line breaks. */
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
