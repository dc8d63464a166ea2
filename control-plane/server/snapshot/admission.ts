// Decides what to do with a revision: it comes into force, is put on trial, waits for the end of a trial, or is
// refused, because it is invalid, was taken back, would remove most limits without an approval, or breaks the policy.
// Pure: cache.ts supplies what a judgement depends on, and carries it out.
import { isDeepStrictEqual } from 'node:util';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import {
  againTrailer,
  allowRemovalTrailer,
  hasTrailer,
  nowTrailer,
  type Revision,
  type RevisionInfo,
  stepsTrailer,
  supersedeTrailer,
  toShortId,
} from '../store/revision.ts';
import type { BuildOutcome, BuiltSnapshots } from './build.ts';
import { findingRemoval } from './large-removal.ts';
import type { AttributedStep } from './makers.ts';
import { judgingByPolicy } from './policy-guard.ts';
import type { InForce, Serving, Verdict } from './served.ts';

/** The verdicts on revisions that outlive a control plane; record/record-keeper.ts supplies them. */
export interface RevisionMemory {
  /** False until it has been read, here or beside the rules. */
  readonly isKnown: boolean;
  /** Whether revisions reach the workers in steps, so that one that changes something is on trial first. */
  readonly rollsOut: boolean;
  /** Why no revision can be judged, human-readable: the record has a version that this program does not read. Undefined
   * otherwise. */
  readonly otherVersion?: string | undefined;
  /** The revision that all workers had at the last write of the record; undefined if none is remembered. */
  readonly inForce: { readonly revision: string; readonly content: string } | undefined;
  /** Whether all workers recently had this content: a return to it needs no steps. */
  wasInForce(content: string): boolean;
  /** Whether any outcome on record brought the content into force, also without steps and for one control plane alone: a
   * return to it is an undo, which is allowed to remove domains and to have violations of the policy. */
  wasServed(content: string): boolean;
  /** Whether a rollout is under way. */
  readonly isRolling: boolean;
  /** Whether this content was taken back at its last completed try, even if it is being tried again now. */
  wasTakenBack(content: string): boolean;
  /** The newest verdict on a revision, or on another one with the same content. */
  verdictOf(revision: string, content: string): Verdict | undefined;
}

/** A revision to be judged. */
export interface Candidate {
  readonly revision: Revision;
  readonly outcome: BuildOutcome;
  /** The verdict on the revision or its content from before it became the newest one: it is about an earlier try, and
   * does not count. */
  readonly earlierVerdict: Verdict | undefined;
}

/** The content of a valid revision; undefined for an invalid one. */
export function contentOf({ outcome }: Pick<Candidate, 'outcome'>): string | undefined {
  return outcome.ok ? outcome.built.content : undefined;
}

export interface Judged extends Candidate {
  /** Whether it is valid but waits for an approval. */
  readonly isHeldBack: boolean;
  /** Wall time since which the newest revisions have been refused without interruption; undefined if the newest one is
   * not refused. */
  readonly invalidSinceMs: number | undefined;
}

/** What a judgement depends on besides the revision. */
export interface Circumstances {
  readonly serving: Serving;
  /** The rules that the workers have, if known. */
  readonly before: Pick<InForce, 'revision' | 'built'> | undefined;
  readonly memory: RevisionMemory;
  /** Whether every revision may remove most limits. */
  readonly allowsRemoval: boolean;
  /** The steps to the revision from the one in force; empty if its author alone made all of them. */
  readonly steps: readonly AttributedStep[];
}

export type Admission = Findings &
  (
    | { readonly becomes: 'refused' }
    | { readonly becomes: 'in_force' | 'on_trial' | 'waiting'; readonly built: BuiltSnapshots }
  );

interface Findings {
  /** The errors of a refused revision, with its warnings and notes. */
  readonly problems: readonly Problem[];
  /** Whether the revision lacks only an approval. */
  readonly isHeldBack: boolean;
  /** The reason that its author gives for breaking the policy. */
  readonly exception: string | undefined;
  /** What happens to the revision on trial: `withdrawn` because this revision replaces it, `ended` because this
   * revision is the one on trial. */
  readonly trial: 'stays' | 'withdrawn' | 'ended';
}

export function judge(candidate: Candidate, given: Circumstances): Admission {
  return runAtOnce(judging(candidate, given));
}

/** Like `judge`, in steps. */
export function* judging(candidate: Candidate, given: Circumstances): Generator<void, Admission> {
  const { revision, outcome } = candidate;
  const { trial } = given.serving;
  const plain = { isHeldBack: false, exception: undefined, trial: 'stays' } as const;
  if (!outcome.ok) return { ...plain, becomes: 'refused', problems: outcome.problems };
  const { built } = outcome;
  const verdict = findTakenBack(candidate, given.memory);
  const takenBack = verdict && toTakenBackProblem(verdict.reason);
  const isUndo = given.memory.wasServed(built.content);
  const problem = takenBack ?? (yield* findLargeRemoval(candidate, built, given, isUndo));
  const { id, author, message } = revision;
  const own = { makers: [{ revision: id, author, message }], changed: undefined };
  const steps = given.steps.length > 0 ? given.steps : [own];
  const policy = yield* judgingByPolicy(given.before?.built, built, { steps, isUndo });
  const refused = problem === undefined ? policy.refused : [problem, ...policy.refused];
  const problems = [...outcome.warnings, ...policy.tolerated];
  const goesBack = isBack(revision, built, given);
  if (refused.length > 0) {
    const isTried = trial?.revision.id === revision.id;
    return {
      becomes: 'refused',
      problems: [...problems, ...refused],
      isHeldBack: problem !== undefined && takenBack === undefined && policy.refused.length === 0,
      exception: undefined,
      // A return to earlier content that waits only for an approval still withdraws the revision on trial; one that the
      // policy refuses does not.
      trial: goesBack && policy.refused.length === 0 ? 'withdrawn' : isTried ? 'ended' : 'stays',
    };
  }
  const { exception } = policy;
  if (goesBack || !needsTrial(revision, built, given)) {
    return { ...plain, becomes: 'in_force', built, problems, exception, trial: 'withdrawn' };
  }
  const isFree =
    trial === undefined ||
    trial.revision.id === revision.id ||
    hasTrailer(revision, supersedeTrailer);
  return { ...plain, becomes: isFree ? 'on_trial' : 'waiting', built, problems, exception };
}

/** Whether the verdicts that apply now differ from those by which the revision was judged. Verdicts on the trial are
 * handled by whoever follows the rollout. */
export function isOutdated(newest: Judged, given: Circumstances): boolean {
  const { revision, isHeldBack, invalidSinceMs } = newest;
  const { serving, memory, allowsRemoval } = given;
  // Once a rollout has begun, the record no longer has such a verdict.
  const isHeldBackNow =
    !mayRemove(revision, allowsRemoval) && findHeldBack(newest, memory) !== undefined;
  if (revision.id === serving.trial?.revision.id) return isHeldBackNow;
  if (isHeldBack) return isApproved(newest, memory);
  if (invalidSinceMs !== undefined) return false;
  const isInForce = revision.id === serving.inForce?.revision.id;
  return isHeldBackNow || (!isInForce && findTakenBack(newest, memory) !== undefined);
}

/** Whether the revision may remove most limits without an approval. */
export function mayRemove(revision: RevisionInfo, allowsRemoval: boolean): boolean {
  return allowsRemoval || hasTrailer(revision, allowRemovalTrailer);
}

/** The verdict that counts as earlier for a revision that has become the newest one after `before`; undefined if the
 * verdict on record is about the try that begins now. `seen`: ids of the revisions that have been the newest. */
export function findEarlierVerdict(
  revision: Revision,
  content: string | undefined,
  before: Candidate | undefined,
  { memory, seen }: { readonly memory: RevisionMemory; readonly seen: ReadonlySet<string> },
): Verdict | undefined {
  if (content === undefined) return undefined;
  const { id } = revision;
  const verdict = memory.verdictOf(id, content);
  const isOnRevision = verdict?.revision === id;
  if (!isOnRevision && hasTrailer(revision, againTrailer)) return verdict;
  // After a start the try on record continues; with the same content, the try of the previous revision.
  if (before === undefined) return undefined;
  if (contentOf(before) === content) return before.earlierVerdict;
  // Other control planes found the revision earlier, and have judged this try.
  const isOnThisTry = isOnRevision && !seen.has(id);
  return isOnThisTry ? undefined : verdict;
}

/** Whether the revision returns to content that all workers had before: that is an undo, which needs no steps. */
function isBack(
  revision: Revision,
  { content }: BuiltSnapshots,
  { serving, memory }: Circumstances,
): boolean {
  const isTried =
    content === serving.trial?.built.content ||
    [stepsTrailer, againTrailer].some((trailer) => hasTrailer(revision, trailer));
  return !isTried && !wasBad(revision, content, memory) && memory.wasInForce(content);
}

/** A revision that changes nothing for any node needs no trial. */
function needsTrial(
  revision: Revision,
  { content }: BuiltSnapshots,
  { serving, memory }: Circumstances,
): boolean {
  if (!memory.rollsOut) return false;
  if (hasTrailer(revision, nowTrailer) && !wasBad(revision, content, memory)) return false;
  const before = serving.inForce?.built.content ?? memory.inForce?.content;
  return before === undefined ? memory.isRolling : before !== content;
}

/** Whether the revision or its content was taken back for a reason other than a newer revision: then it can return only
 * in steps. */
function wasBad({ id }: Revision, content: string, memory: RevisionMemory): boolean {
  const verdict = memory.verdictOf(id, content);
  const isBad = verdict?.outcome === 'taken_back' && !isReplaced(verdict.reason);
  return isBad || memory.wasTakenBack(content);
}

function findTakenBack(candidate: Candidate, memory: RevisionMemory): Verdict | undefined {
  const { revision, earlierVerdict } = candidate;
  return takenBackBy(verdictOn(candidate, memory), earlierVerdict, revision.id);
}

function* findLargeRemoval(
  candidate: Candidate,
  built: BuiltSnapshots,
  { before, memory, allowsRemoval }: Circumstances,
  isUndo: boolean,
): Generator<void, Problem | undefined> {
  const { revision } = candidate;
  if (mayRemove(revision, allowsRemoval) || isApproved(candidate, memory)) return undefined;
  const heldBack = findHeldBack(candidate, memory);
  if (heldBack !== undefined) {
    return problemOf('error', 'large-removal', '(all files)', heldBack.reason);
  }
  if (before === undefined || before.revision.id === revision.id) return undefined;
  return yield* findingRemoval(before.built, built, isUndo);
}

/** The newest verdict on the revision; undefined also if the revision is invalid. */
function verdictOn(candidate: Candidate, memory: RevisionMemory): Verdict | undefined {
  const content = contentOf(candidate);
  return content === undefined ? undefined : memory.verdictOf(candidate.revision.id, content);
}

export function isApproved(candidate: Candidate, memory: RevisionMemory): boolean {
  return verdictOn(candidate, memory)?.outcome === 'approved';
}

/** The verdict of the control planes that know what the revision would remove, even if this one does not, or no longer
 * does. */
function findHeldBack(candidate: Candidate, memory: RevisionMemory): Verdict | undefined {
  const inForce = memory.inForce?.content;
  if (inForce === contentOf(candidate)) return undefined;
  return heldBackBy(verdictOn(candidate, memory), candidate.earlierVerdict, inForce);
}

export function toTakenBackProblem(reason: string): Problem {
  const hint =
    "'rollout retry' tries it again in steps, and '--again' with a change the same rules";
  return problemOf('error', 'taken-back', '(all files)', `taken back: ${reason}`, hint);
}

/** Why a rollout ended, human-readable. */
export function toReplaced(newer: string): string {
  return `revision ${toShortId(newer)} has taken its place`;
}

export function isReplaced(reason: string): boolean {
  return /^revision \S+ has taken its place$/.test(reason);
}

/** The verdict that takes this try of `revision` back; `earlierVerdict` is about an earlier try. If a newer revision
 * replaced another one with the same content, that does not affect this one. */
export function takenBackBy<Found extends Verdict>(
  verdict: Found | undefined,
  earlierVerdict: Verdict | undefined,
  revision: string,
): Found | undefined {
  const newest = newVerdict('taken_back', verdict, earlierVerdict);
  return newest && isReplaced(newest.reason) && newest.revision !== revision ? undefined : newest;
}

/** The verdict that holds this try back. A removal depends not on the try, but on the rules that all workers have: those
 * of `against`. Without `against` nothing was in force on record: the verdict is about the try, like the others. */
export function heldBackBy<Found extends Verdict>(
  verdict: Found | undefined,
  earlierVerdict: Verdict | undefined,
  inForce: string | undefined,
): Found | undefined {
  if (verdict?.against === undefined) return newVerdict('held_back', verdict, earlierVerdict);
  return verdict.outcome === 'held_back' && verdict.against === inForce ? verdict : undefined;
}

function newVerdict<Found extends Verdict>(
  outcome: Verdict['outcome'],
  verdict: Found | undefined,
  earlierVerdict: Verdict | undefined,
): Found | undefined {
  return verdict?.outcome === outcome && !isDeepStrictEqual(verdict, earlierVerdict)
    ? verdict
    : undefined;
}
