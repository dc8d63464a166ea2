// Logs revisions: which is in force, which is refused and why, and warnings that are new.
import { toCountText } from '../../shared/count-text.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { Log } from '../../shared/log.ts';
import { isError, isNote, isWarning, type Problem } from '../../shared/rules/problem/problem.ts';
import { formatProblem, logProblems } from '../../shared/rules/problem/problem-text.ts';
import { type RevisionInfo, toShortId, toTitle } from '../store/revision.ts';
import type { BuiltSnapshots } from './build.ts';
import { countServed } from './served-counts.ts';

export class RevisionLog {
  readonly #store: string;
  readonly #log: Log;
  /** Of the revision before. */
  #saidWarnings: ReadonlySet<string> = new Set();
  #excusedId: string | undefined;

  /** `store`: the description of the store. */
  constructor(store: string, log: Log) {
    this.#store = store;
    this.#log = log;
  }

  /** `isAnswer`: seen at the default level, because somebody waits for it. */
  inForce(revision: RevisionInfo, built: BuiltSnapshots, isNews: boolean, isAnswer: boolean): void {
    const text = `Revision ${toTitle(revision)} is in force: ${countsOf(built)}${isNews ? '' : '; nothing changes for the workers'}`;
    if (isAnswer) this.#log.notice(text);
    else this.#log.info(text);
  }

  /** An earlier one, for the reason `why`. */
  restored(revision: RevisionInfo, built: BuiltSnapshots, why: string, nowMs: number): void {
    const seconds = Math.max(0, Math.round((nowMs - revision.atMs) / 1000));
    this.#log.warning(
      `${why}: the last good revision ${toTitle(revision)}, ${formatDuration(seconds * 1000)} old, is in force: ${countsOf(built)}`,
    );
  }

  /** `kept` is the id of the revision that stays in force. */
  refused(revision: RevisionInfo, problems: readonly Problem[], kept: string | undefined): void {
    const errors = problems.filter(isError);
    const consequence =
      kept === undefined ? 'nothing is in force' : `revision ${toShortId(kept)} stays in force`;
    logProblems(
      this.#log.error,
      errors,
      `Revision ${toTitle(revision)} of ${this.#store} is not served`,
      `${toCountText(errors.length, 'error')}: ${consequence}`,
    );
  }

  waits(revision: RevisionInfo, trial: RevisionInfo): void {
    this.#log.notice(
      `Revision ${toTitle(revision)} waits until ${toShortId(trial.id)}, which is on trial, is in force or taken back`,
    );
  }

  /** The workers that have the revision on trial lose it. */
  withdrawn(trial: RevisionInfo, by: RevisionInfo): void {
    this.#log.notice(
      `Revision ${toTitle(trial)} is on trial no more: ${toShortId(by.id)} has taken its place`,
    );
  }

  /** It does not keep to the policy, for this reason of its author; the warnings say how. */
  excused(revision: RevisionInfo, reason: string): void {
    if (revision.id === this.#excusedId) return;
    this.#excusedId = revision.id;
    this.#log.notice(
      `audit: revision ${toTitle(revision)} breaks the policy, by its own word: ${reason}`,
    );
  }

  /** Logs the warnings that the revision before did not have. */
  warnings(warnings: readonly Problem[]): void {
    const texts = warnings.map(formatProblem);
    const fresh = warnings.filter((_, index) => !this.#saidWarnings.has(texts[index] ?? ''));
    logProblems(this.#log.warning, fresh.filter(isWarning), 'Configuration');
    logProblems(this.#log.info, fresh.filter(isNote), 'Configuration');
    this.#saidWarnings = new Set(texts);
  }
}

/** `2 domains, 5 limits`: of what some node gets. */
function countsOf(built: BuiltSnapshots): string {
  const { domains, limits } = countServed(built);
  return `${toCountText(domains, 'domain')}, ${toCountText(limits, 'limit')}`;
}
