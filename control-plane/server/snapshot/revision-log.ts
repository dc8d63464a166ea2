// The log lines on revisions: which one is in force, which is refused and why, and new warnings. Pure.
import { toCountText } from '../../../shared/count-text.ts';
import { formatDuration } from '../../../shared/duration.ts';
import type { LogDetail } from '../../../shared/log.ts';
import { isError, isNote, isWarning, type Problem } from '../../../shared/rules/problem/problem.ts';
import { formatProblem, logProblems } from '../../../shared/rules/problem/problem-text.ts';
import { type RevisionInfo, toShortId, toTitle } from '../store/revision.ts';
import type { BuiltSnapshots } from './build.ts';
import { countServed } from './served.ts';

export interface LogLine {
  readonly kind: 'log';
  readonly level: 'info' | 'notice' | 'warning' | 'error';
  readonly text: string;
  readonly detail?: LogDetail | undefined;
}

/** `isAnswer`: logged at the default level, because an operator waits for it. */
export function describeInForce(
  revision: RevisionInfo,
  built: BuiltSnapshots,
  isNews: boolean,
  isAnswer: boolean,
): LogLine {
  const text = `Revision ${toTitle(revision)} is in force: ${countsOf(built)}${isNews ? '' : '; nothing changes for the workers'}`;
  return { kind: 'log', level: isAnswer ? 'notice' : 'info', text };
}

/** An earlier revision is served, for the reason `why`. */
export function describeRestored(
  revision: RevisionInfo,
  built: BuiltSnapshots,
  why: string,
  nowMs: number,
): LogLine {
  const seconds = Math.max(0, Math.round((nowMs - revision.atMs) / 1000));
  const text = `${why}: the last good revision ${toTitle(revision)}, ${formatDuration(seconds * 1000)} old, is in force: ${countsOf(built)}`;
  return { kind: 'log', level: 'warning', text };
}

/** `inForce` is the id of the revision that stays in force; `store` the description of the store. */
export function describeRefused(
  revision: RevisionInfo,
  problems: readonly Problem[],
  inForce: string | undefined,
  store: string,
): LogLine[] {
  const errors = problems.filter(isError);
  const consequence =
    inForce === undefined ? 'nothing is in force' : `revision ${toShortId(inForce)} stays in force`;
  const start = `Revision ${toTitle(revision)} of ${store} is not served`;
  const inAll = `${toCountText(errors.length, 'error')}: ${consequence}`;
  return toLines('error', errors, start, inAll);
}

export function describeWaiting(revision: RevisionInfo, trial: RevisionInfo): LogLine {
  const text = `Revision ${toTitle(revision)} waits until ${toShortId(trial.id)}, which is on trial, is in force or taken back`;
  return { kind: 'log', level: 'notice', text };
}

/** The workers that have the revision on trial lose it. */
export function describeWithdrawn(trial: RevisionInfo, by: RevisionInfo): LogLine {
  const text = `Revision ${toTitle(trial)} is no longer on trial: ${toShortId(by.id)} has taken its place`;
  return { kind: 'log', level: 'notice', text };
}

/** The revision breaks the policy for a reason that its author gives; the warnings have the details. */
export function describeExcused(revision: RevisionInfo, reason: string): LogLine {
  const text = `audit: revision ${toTitle(revision)} breaks the policy, by its own word: ${reason}`;
  return { kind: 'log', level: 'notice', text };
}

/** The warnings and notes that have not been logged yet. */
export function describeWarnings(
  warnings: readonly Problem[],
  logged: ReadonlySet<string>,
): LogLine[] {
  const fresh = warnings.filter((each) => !logged.has(formatProblem(each)));
  return [
    ...toLines('warning', fresh.filter(isWarning), 'Configuration'),
    ...toLines('info', fresh.filter(isNote), 'Configuration'),
  ];
}

function toLines(
  level: LogLine['level'],
  problems: readonly Problem[],
  start: string,
  consequence?: string,
): LogLine[] {
  const lines: LogLine[] = [];
  const write = (text: string, detail?: LogDetail) =>
    void lines.push({ kind: 'log', level, text, detail });
  logProblems(write, problems, start, consequence);
  return lines;
}

/** `2 domains, 5 limits`: counts only what at least one node gets. */
function countsOf(built: BuiltSnapshots): string {
  const { domains, limits } = countServed(built);
  return `${toCountText(domains, 'domain')}, ${toCountText(limits, 'limit')}`;
}
