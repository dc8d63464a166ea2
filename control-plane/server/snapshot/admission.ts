// What becomes of a revision: everybody gets it, it is on trial, it waits for the end of a trial, or it is refused,
// because it is invalid, was taken back, would remove most limits without an approval, or breaks the policy. Pure:
// cache.ts knows what a judgement depends on, and does what it says.
import { isDeepStrictEqual } from 'node:util';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { CheckedDomainRules, CheckedRules } from '../../authoring/checked-rules.ts';
import {
  againTrailer,
  allowRemovalTrailer,
  nowTrailer,
  type Revision,
  type RevisionInfo,
  saysTrailer,
  stepsTrailer,
  supersedeTrailer,
  toLine,
  toShortId,
} from '../store/revision.ts';
import type { BuildOutcome, BuiltSnapshots } from './build.ts';
import type { Step } from './makers.ts';
import { describeClass, type RulesForNodes } from './node-change.ts';
import { findingClasses } from './node-classes.ts';
import { judgingByPolicy } from './policy-guard.ts';
import type { InForce, Said, Serving } from './served.ts';

/** The verdicts on revisions that outlive a control plane: given by record/record-keeper.ts. */
export interface RevisionMemory {
  /** False until it has been read, here or beside the rules. */
  readonly isKnown: boolean;
  /** Whether revisions reach the workers in steps, so that one that changes something is on trial first. */
  readonly rollsOut: boolean;
  /** Why no revision can be judged, for people: the record is of a version that this program does not read. Undefined
   * otherwise. */
  readonly otherVersion?: string | undefined;
  /** The revision that everybody had when this was written last; undefined where nothing is remembered. */
  readonly inForce: { readonly revision: string; readonly content: string } | undefined;
  /** Whether everybody had this content, lately. */
  wasInForce(content: string): boolean;
  /** Whether this content was taken back when it was tried last, also where it is tried again now. */
  wasTakenBack(content: string): boolean;
  /** The last word about a revision, or about another one with the same content. */
  verdictOf(revision: string, content: string): Said | undefined;
}

/** A revision to be judged. */
export interface Candidate {
  readonly whole: Revision;
  readonly outcome: BuildOutcome;
  /** Of it or its content before it came after another one: that is about an earlier try, and does not count. */
  readonly saidBefore: Said | undefined;
}

/** Undefined when it is invalid. */
export function contentOf({ outcome }: Pick<Candidate, 'outcome'>): string | undefined {
  return outcome.ok ? outcome.built.content : undefined;
}

export interface Judged extends Candidate {
  /** Valid, but it waits for an approval. */
  readonly isHeldBack: boolean;
  /** Wall time since which the newest revision, whichever it was, has been refused; undefined when it is not. */
  readonly invalidSinceMs: number | undefined;
}

/** What a judgement depends on beside the revision. */
export interface Circumstances {
  readonly serving: Serving;
  /** The rules that the workers have, as far as they are known. */
  readonly before: Pick<InForce, 'revision' | 'built'> | undefined;
  readonly memory: RevisionMemory;
  /** Contents that this control plane has had in force. */
  readonly served: ReadonlySet<string>;
  /** Whether every revision may remove most limits. */
  readonly allowsRemoval: boolean;
  /** The way to the revision from what is in force; empty where nobody but its author has gone it. */
  readonly steps: readonly Step[];
}

export type Judgement = Findings &
  (
    | { readonly becomes: 'refused' }
    | { readonly becomes: 'in_force' | 'on_trial' | 'waiting'; readonly built: BuiltSnapshots }
  );

interface Findings {
  /** Of one that is refused with its errors, else warnings and notes. */
  readonly problems: readonly Problem[];
  /** Whether an approval is all that it lacks. */
  readonly isHeldBack: boolean;
  /** The reason that its author gives for breaking the policy. */
  readonly exception: string | undefined;
  /** What becomes of another revision on trial: `withdrawn` because this one wants something else, `ended` because it is
   * this one. */
  readonly trial: 'stays' | 'withdrawn' | 'ended';
}

export function judge(candidate: Candidate, given: Circumstances): Judgement {
  return runAtOnce(judging(candidate, given));
}

/** The same, in steps. */
export function* judging(candidate: Candidate, given: Circumstances): Generator<void, Judgement> {
  const { whole, outcome } = candidate;
  const { trial } = given.serving;
  const plain = { isHeldBack: false, exception: undefined, trial: 'stays' } as const;
  if (!outcome.ok) return { ...plain, becomes: 'refused', problems: outcome.problems };
  const { built } = outcome;
  const said = findTakenBack(candidate, given.memory);
  const takenBack = said && toTakenBack(said.reason);
  const isUndo = wasInForce(built.content, given);
  const problem = takenBack ?? (yield* findLargeRemoval(candidate, built, given, isUndo));
  const { id: revision, author, message } = whole;
  const own = { makers: [{ revision, author, message }], changed: undefined };
  const steps = given.steps.length > 0 ? given.steps : [own];
  const policy = yield* judgingByPolicy(given.before?.built, built, { steps, isUndo });
  const refused = problem === undefined ? policy.refused : [problem, ...policy.refused];
  const problems = [...outcome.warnings, ...policy.tolerated];
  const goesBack = isBack(whole, built, given);
  if (refused.length > 0) {
    const isTried = trial?.whole.id === whole.id;
    return {
      becomes: 'refused',
      problems: [...problems, ...refused],
      isHeldBack: problem !== undefined && takenBack === undefined && policy.refused.length === 0,
      exception: undefined,
      // What only waits for an approval undoes the revision on trial all the same; what the policy refuses undoes nothing.
      trial: goesBack && policy.refused.length === 0 ? 'withdrawn' : isTried ? 'ended' : 'stays',
    };
  }
  const { exception } = policy;
  if (goesBack || !needsTrial(whole, built, given)) {
    return { ...plain, becomes: 'in_force', built, problems, exception, trial: 'withdrawn' };
  }
  const isFree =
    trial === undefined || trial.whole.id === whole.id || saysTrailer(whole, supersedeTrailer);
  return { ...plain, becomes: isFree ? 'on_trial' : 'waiting', built, problems, exception };
}

/**
 * Whether other verdicts count of it now than those by which it was judged. Verdicts on the trial are for the one who
 * follows the rollout.
 */
export function isOutdated(newest: Judged, given: Circumstances): boolean {
  const { whole, isHeldBack, invalidSinceMs } = newest;
  const { serving, memory, allowsRemoval } = given;
  // A rollout that has begun has no such word on record any more.
  const isHeldNow = !mayRemove(whole, allowsRemoval) && findHeldBack(newest, memory) !== undefined;
  if (whole.id === serving.trial?.whole.id) return isHeldNow;
  if (isHeldBack) return isApproved(newest, memory);
  if (invalidSinceMs !== undefined) return false;
  const isInForce = whole.id === serving.inForce?.revision.id;
  return isHeldNow || (!isInForce && findTakenBack(newest, memory) !== undefined);
}

/** Whether everybody had this content before, as far as that is remembered. */
export function wasInForce(
  content: string,
  { served, memory }: Pick<Circumstances, 'served' | 'memory'>,
): boolean {
  return served.has(content) || memory.wasInForce(content);
}

/** Whether it may remove most limits without an approval. */
export function mayRemove(revision: RevisionInfo, allowsRemoval: boolean): boolean {
  return allowsRemoval || saysTrailer(revision, allowRemovalTrailer);
}

/** What was said of a revision that has become the newest one after `before`; `seen`: the ids of those that were that. */
export function findSaidBefore(
  revision: Revision,
  content: string | undefined,
  before: Candidate | undefined,
  { memory, seen }: { readonly memory: RevisionMemory; readonly seen: ReadonlySet<string> },
): Said | undefined {
  if (content === undefined) return undefined;
  const { id } = revision;
  const said = memory.verdictOf(id, content);
  if (saysTrailer(revision, againTrailer) && said?.revision !== id) return said;
  if (before === undefined) return undefined;
  if (contentOf(before) === content) return before.saidBefore;
  // Other control planes knew it earlier: their verdict is about this try.
  return said?.revision === id && !seen.has(id) ? undefined : said;
}

/** To what everybody had before: that is an undo, which needs no steps. */
function isBack(
  whole: Revision,
  { content }: BuiltSnapshots,
  { serving, memory }: Circumstances,
): boolean {
  const isTried =
    content === serving.trial?.built.content ||
    [stepsTrailer, againTrailer].some((trailer) => saysTrailer(whole, trailer));
  return !isTried && !wasBad(whole, content, memory) && memory.wasInForce(content);
}

/** A revision that changes nothing for anybody has nothing to try. */
function needsTrial(
  whole: Revision,
  { content }: BuiltSnapshots,
  { serving, memory }: Circumstances,
): boolean {
  if (!memory.rollsOut) return false;
  if (saysTrailer(whole, nowTrailer) && !wasBad(whole, content, memory)) return false;
  const before = serving.inForce?.built.content ?? memory.inForce?.content;
  return before !== undefined && before !== content;
}

/** Whether it, or its content, was taken back for other reasons than a newer one: it comes again in steps alone. */
function wasBad({ id }: Revision, content: string, memory: RevisionMemory): boolean {
  const said = memory.verdictOf(id, content);
  const isSaid = said?.outcome === 'taken_back' && !isReplaced(said.reason);
  return isSaid || memory.wasTakenBack(content);
}

function findTakenBack(candidate: Candidate, memory: RevisionMemory): Said | undefined {
  const { whole, saidBefore } = candidate;
  return takenBackBy(verdictOn(candidate, memory), saidBefore, whole.id);
}

function* findLargeRemoval(
  candidate: Candidate,
  built: BuiltSnapshots,
  { before, memory, allowsRemoval }: Circumstances,
  isUndo: boolean,
): Generator<void, Problem | undefined> {
  const { whole } = candidate;
  if (mayRemove(whole, allowsRemoval) || isApproved(candidate, memory)) return undefined;
  const heldBack = findHeldBack(candidate, memory);
  if (heldBack !== undefined) {
    return problemOf('error', 'large-removal', '(all files)', heldBack.reason);
  }
  if (before === undefined || before.revision.id === whole.id) return undefined;
  return yield* findingRemoval(before.built, built, isUndo);
}

/** Undefined also where it is invalid. */
function verdictOn(candidate: Candidate, memory: RevisionMemory): Said | undefined {
  const content = contentOf(candidate);
  return content === undefined ? undefined : memory.verdictOf(candidate.whole.id, content);
}

export function isApproved(candidate: Candidate, memory: RevisionMemory): boolean {
  return verdictOn(candidate, memory)?.outcome === 'approved';
}

/** By those that know what it would remove, also where that is not known here, or not any more. */
function findHeldBack(candidate: Candidate, memory: RevisionMemory): Said | undefined {
  const inForce = memory.inForce?.content;
  if (inForce === contentOf(candidate)) return undefined;
  return heldBackBy(verdictOn(candidate, memory), candidate.saidBefore, inForce);
}

export function toTakenBack(reason: string): Problem {
  const hint =
    "'rollout retry' tries it again in steps, and '--again' with a change the same rules";
  return problemOf('error', 'taken-back', '(all files)', `taken back: ${reason}`, hint);
}

/** Why a rollout ended, for people. */
export function toReplaced(newer: string): string {
  return `revision ${toShortId(newer)} has taken its place`;
}

export function isReplaced(reason: string): boolean {
  return /^revision \S+ has taken its place$/.test(reason);
}

/** The word that takes this try of `revision` back; `saidBefore` is about an earlier one. That the place of a revision with
 * the same content was taken says nothing of this one. */
export function takenBackBy<Word extends Said>(
  said: Word | undefined,
  saidBefore: Said | undefined,
  revision: string,
): Word | undefined {
  const word = newWord('taken_back', said, saidBefore);
  return word && isReplaced(word.reason) && word.revision !== revision ? undefined : word;
}

/** The word that holds this try back. A removal does not depend on the try, but on the rules that everybody has. */
export function heldBackBy<Word extends Said>(
  said: Word | undefined,
  saidBefore: Said | undefined,
  inForce: string | undefined,
): Word | undefined {
  if (said?.against === undefined) return newWord('held_back', said, saidBefore);
  return said.outcome === 'held_back' && said.against === inForce ? said : undefined;
}

function newWord<Word extends Said>(
  outcome: Said['outcome'],
  said: Word | undefined,
  saidBefore: Said | undefined,
): Word | undefined {
  return said?.outcome === outcome && !isDeepStrictEqual(said, saidBefore) ? said : undefined;
}

/** Removing fewer is everyday work, whatever share of all it is. */
const minRemoved = 10;
/** Of one domain, of which half is enough. */
const minRemovedOfDomain = 2;
const maxNamed = 20;

/** An error when nodes get no domain any more that got some, lose more than half of their limits and at least ten, or lose
 * half of those of one domain and at least two, other than by an undo: all nodes by the rules, or some by their group; else
 * undefined. An empty folder, a wrong path or a bad merge looks like any
 * valid revision, and would let everything pass. In steps. */
export function* findingRemoval(
  before: RulesForNodes,
  after: RulesForNodes,
  isUndo = false,
): Generator<void, Problem | undefined> {
  const limits = yield* compareLimits(before.ruleSet, after.ruleSet);
  const [had, has] = [before, after].map(({ ruleSet }) => [...ruleSet.domains.keys()]);
  const ofAll = yield* toRemoval(limits, had ?? [], has ?? [], { where: '', isUndo });
  if (ofAll !== undefined) return ofAll;
  for (const each of yield* findingClasses(before.groups, after.groups)) {
    yield;
    const where = ` for ${describeClass(each)}`;
    const problem = yield* toRemoval(limits, each.before.domains, each.after.domains, {
      where,
      isUndo,
    });
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Of one domain of before. */
interface ComparedLimits {
  readonly rules: CheckedDomainRules;
  /** Those that nobody has any more. */
  readonly removed: Names;
}

interface Names {
  readonly count: number;
  readonly first: readonly string[];
}

const noNames: Names = { count: 0, first: [] };

function allOf(rules: CheckedDomainRules): Names {
  return { count: rules.limitNameCount, first: [...rules.limitNames().take(maxNamed)] };
}

function* compareLimits(
  before: CheckedRules,
  after: CheckedRules,
): Generator<void, ReadonlyMap<string, ComparedLimits>> {
  const found = new Map<string, ComparedLimits>();
  for (const [domain, rules] of before.domains) {
    const now = after.domains.get(domain);
    // Most revisions leave most domains as they are.
    const removed = now === rules ? noNames : yield* findRemoved(rules, now);
    found.set(domain, { rules, removed });
    yield;
  }
  return found;
}

function* findRemoved(
  before: CheckedDomainRules,
  after: CheckedDomainRules | undefined,
): Generator<void, Names> {
  if (after === undefined) return allOf(before);
  const kept = new Set<string>();
  for (const name of after.limitNames()) {
    kept.add(name);
    yield;
  }
  let count = 0;
  const first: string[] = [];
  for (const name of before.limitNames()) {
    yield;
    if (kept.has(name)) continue;
    count++;
    if (first.length < maxNamed) first.push(name);
  }
  return { count, first };
}

/** The first domain that loses itself, or half of its limits. */
interface LostLimits {
  readonly domain: string;
  readonly count: number;
  readonly of: number;
  readonly isWhole: boolean;
}

function* toRemoval(
  limits: ReadonlyMap<string, ComparedLimits>,
  before: readonly string[],
  after: readonly string[],
  { where, isUndo }: { readonly where: string; readonly isUndo: boolean },
): Generator<void, Problem | undefined> {
  const kept = new Set(after);
  const named: string[] = [];
  let [limitCount, removedCount] = [0, 0];
  let lost: LostLimits | undefined;
  for (const domain of before) {
    yield;
    const compared = limits.get(domain);
    if (compared === undefined) continue;
    const { rules, removed } = compared;
    const all = rules.limitNameCount;
    const gone = kept.has(domain) ? removed : allOf(rules);
    limitCount += all;
    removedCount += gone.count;
    if (!isUndo && gone.count >= minRemovedOfDomain && gone.count * 2 >= all) {
      lost ??= { domain, count: gone.count, of: all, isWhole: !kept.has(domain) };
    }
    for (const name of gone.first.slice(0, maxNamed - named.length)) named.push(toExcerpt(name));
  }
  const leavesNothing = before.length > 0 && after.length === 0;
  const takesMost = removedCount >= minRemoved && removedCount * 2 > limitCount;
  if (!leavesNothing && !takesMost && lost === undefined) return undefined;
  const more = removedCount - named.length;
  const list = [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ');
  const ofDomain =
    lost &&
    `domain '${toExcerpt(lost.domain)}' would ${lost.isWhole ? 'go' : `lose ${lost.count} of ${lost.of} limits`}`;
  const most = takesMost ? `${removedCount} of ${limitCount} limits would go` : ofDomain;
  const what = `held back: ${leavesNothing ? 'no domain would be left' : most}${where}`;
  const hint = `if that is meant, approve the revision, or say it beforehand: '${toLine(allowRemovalTrailer)}' in the message of the commit, --allow-removal with a change`;
  return problemOf(
    'error',
    'large-removal',
    '(all files)',
    `${what}${list === '' ? '' : ` (${list})`}`,
    hint,
  );
}
