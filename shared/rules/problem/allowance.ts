// Comments `# ratelane: allow NAME` in rules files, which suppress warnings and notes: at the end of a line for that
// line, on a line of its own for the next key and all below it, and before the first key for the whole file.

import { runAtOnce } from '../../in-slices.ts';
import { didYouMean } from '../../nearest-word.ts';
import { toExcerpt } from '../../text-excerpt.ts';
import { isError, type Problem } from './problem.ts';
import { advisoryRules } from './problem-rule.ts';
import { createTextReporter, type Reporter } from './reporter.ts';

interface Allowance {
  /** The name in the comment, known or unknown; undefined if the comment does not have the form above. */
  readonly name: string | undefined;
  readonly offset: number;
  readonly reach: Reach;
}

/** A range of lines, 1-based. */
interface Reach {
  readonly firstLine: number;
  lastLine: number;
}

interface NamedText {
  readonly path: string;
  readonly text: string;
}

export interface AllowedProblems {
  /** The problems that no comment allows. */
  readonly problems: readonly Problem[];
  /** Problems of comments that allow nothing. Valid only when all checks have run. */
  readonly idle: readonly Problem[];
}

/** `files` has the texts in which the problems may be, under the same names. Errors cannot be allowed. */
export function applyAllowances(
  problems: readonly Problem[],
  files: readonly NamedText[],
): AllowedProblems {
  return runAtOnce(applyAllowancesInSteps(problems, files));
}

/** `applyAllowances` in steps. Yields so that the thread can serve other callers. */
export function* applyAllowancesInSteps(
  problems: readonly Problem[],
  files: readonly NamedText[],
): Generator<void, AllowedProblems> {
  const commented: NamedText[] = [];
  const found = new Map<string, readonly Allowance[]>();
  for (const file of files) {
    yield;
    if (!file.text.includes('ratelane:')) continue;
    commented.push(file);
    found.set(file.path, yield* findAllowances(file.text));
  }
  if (commented.length === 0) return { problems, idle: [] };
  const used = new Set<Allowance>();
  const byName = new Map(
    [...found].map(([path, all]) => [path, Map.groupBy(all, ({ name }) => name)]),
  );
  const reported = problems.filter((problem) => {
    if (isError(problem)) return true;
    const named = byName.get(problem.file)?.get(problem.rule) ?? [];
    const matching = named.filter(({ reach }) => reaches(reach, problem));
    for (const allowance of matching) used.add(allowance);
    return matching.length === 0;
  });
  const idle = commented.flatMap((file) =>
    describeUnused(file, found.get(file.path)?.filter((each) => !used.has(each)) ?? []),
  );
  return { problems: reported, idle };
}

/** A problem of a file as a whole has no line. */
function reaches(reach: Reach, { line }: Problem): boolean {
  if (reach === allLines) return true;
  return line !== undefined && line >= reach.firstLine && line <= reach.lastLine;
}

const allLines: Reach = Object.freeze({ firstLine: 1, lastLine: Number.POSITIVE_INFINITY });

const comment = /(?:^|\s)#[ \t]*ratelane:[ \t]*([^\r]*)/;
const names = /^allow[ \t]+([\w-]+(?:[ \t]*,[ \t]*[\w-]+)*)/;
/** Also a byte order mark, a document start and directives. */
const blank = /^[\ufeff \t]*(?:#.*|---[ \t]*|%.*)?\r?$/;

/** How many lines are read between two yields: this takes well below a millisecond. */
const linesAtOnce = 500;

/** Reads each line once, however many comments there are. */
function* findAllowances(text: string): Generator<void, Allowance[]> {
  const found: Allowance[] = [];
  const open: Block[] = [];
  /** The reach of the comments since the last line with content. */
  let next: Reach | undefined;
  let isAtTop = true;
  let offset = 0;
  for (let number = 1; offset <= text.length; number++) {
    if (number % linesAtOnce === 0) yield;
    const newline = text.indexOf('\n', offset);
    const line = text.slice(offset, newline === -1 ? text.length : newline);
    const isBlank = blank.test(line);
    if (!isBlank) {
      isAtTop = false;
      for (let top = open.at(-1); top && !isBelow(line, top); top = open.at(-1)) open.pop();
      for (const { reach } of open) reach.lastLine = number;
      if (next !== undefined) {
        next.lastLine = number;
        open.push({ start: line, reach: next });
        next = undefined;
      }
    }
    const match = comment.exec(line);
    if (match !== null) {
      const own: Reach = { firstLine: number, lastLine: number };
      if (isBlank && !isAtTop) next ??= own;
      const reach = isBlank ? (next ?? allLines) : own;
      const at = offset + line.indexOf('#', match.index);
      for (const name of namesIn(match[1] ?? '')) found.push({ name, offset: at, reach });
    }
    offset += line.length + 1;
  }
  return found;
}

function namesIn(text: string): ReadonlySet<string | undefined> {
  const [, listed] = names.exec(text) ?? [];
  return new Set(listed?.split(',').map((name) => name.trim()) ?? [undefined]);
}

/** A line that a comment applies to, and those below it. */
interface Block {
  readonly start: string;
  readonly reach: Reach;
}

function isBelow(line: string, { start }: Block): boolean {
  const deeper = indentOf(line) - indentOf(start);
  // The items of a list may begin in the same column as its key.
  return deeper > 0 || (deeper === 0 && isItem(line) && !isItem(start));
}

function indentOf(line: string): number {
  return line.search(/[^ ]|$/);
}

function isItem(line: string): boolean {
  return /^ *-(?: |$)/.test(line);
}

function describeUnused({ path, text }: NamedText, unused: readonly Allowance[]): Problem[] {
  const reporter = createTextReporter(path, text);
  for (const { name, offset } of unused) {
    // The checks against Envoy's configuration do not always run, so these names may be unused.
    if (name?.startsWith('envoy-') && isKnown(name)) continue;
    const [message, hint] = describe(name, reporter);
    reporter.advise('allow-comment', offset, '', message, hint);
  }
  return reporter.toProblems();
}

function describe(
  name: string | undefined,
  reporter: Reporter,
): readonly [message: string, hint: string] {
  if (name === undefined) {
    return ['this comment is not understood', "write '# ratelane: allow NAME'"];
  }
  const shown = toExcerpt(name);
  if (isKnown(name)) {
    const hint = 'remove the comment, or put it before the key that it is for';
    return [`this comment allows '${shown}', which does not occur here`, hint];
  }
  const guess = didYouMean(reporter.nearestWord(name, advisoryRules));
  return [
    `this comment allows '${shown}', which is no warning or note`,
    guess ?? 'the name is in brackets after a warning or note',
  ];
}

function isKnown(name: string): boolean {
  return advisoryRules.some((rule) => rule === name);
}
