// Whether a valid revision may be served: not when it was taken back, when it would remove most limits without an
// approval, or when it breaks the policy. cache.ts asks, and serves it or keeps what is in force.
import { isDeepStrictEqual } from 'node:util';
import { type Problem, problemOf } from '../../shared/rules/problem/problem.ts';
import type { RuleSet } from '../../shared/rules/rule.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';
import { judgeByPolicy } from '../policy/policy-guard.ts';
import {
  allowRemovalTrailer,
  type Revision,
  type RevisionInfo,
  saysTrailer,
  toLine,
} from '../store/revision.ts';
import type { BuiltSnapshots } from './build.ts';

/** The verdicts on revisions that outlive a control plane: given by rollout/record-keeper.ts. */
export interface RevisionMemory {
  /** False until it has been read, here or beside the rules. */
  readonly isKnown: boolean;
  /** The revision that everybody had when this was written last; undefined where nothing is remembered. */
  readonly inForce: { readonly revision: string; readonly content: string } | undefined;
  /** Whether everybody had this content, lately. */
  wasInForce(content: string): boolean;
  /** The last word about a revision, or about another one with the same content. */
  verdictOf(revision: string, content: string): Said | undefined;
}

export interface Said {
  /** About which it was said. */
  readonly revision: string;
  readonly outcome: 'held_back' | 'approved' | 'taken_back';
  readonly reason: string;
  /** Of one that is held back: the content that everybody had, from which it would remove too much. An older control plane
   * does not say it. */
  readonly against?: string;
}

/** A revision to be judged. */
export interface Candidate {
  readonly whole: Revision;
  /** Undefined when it is invalid. */
  readonly content: string | undefined;
  /** Of it or its content before it came after another one: that is about an earlier try, and does not count. */
  readonly saidBefore: Said | undefined;
}

export interface Judged extends Candidate {
  /** Valid, but it waits for an approval. */
  readonly isHeldBack: boolean;
  /** Wall time since which the newest revision, whichever it was, has been refused; undefined when it is not. */
  readonly invalidSinceMs: number | undefined;
}

export interface Judgement {
  /** Errors: it is not served; empty where it is. */
  readonly refused: readonly Problem[];
  /** The violations that the policy tolerates. */
  readonly warnings: readonly Problem[];
  /** Whether an approval is all that it lacks. */
  readonly isHeldBack: boolean;
  /** The reason that its author gives for breaking the policy. */
  readonly exception: string | undefined;
}

/** The rules that the workers have, as far as they are known. */
export interface RulesBefore {
  readonly id: string;
  readonly built: BuiltSnapshots;
}

/** Revisions and contents that are remembered. */
const maxSeen = 1_000;

export class Admission {
  readonly #memory: RevisionMemory;
  readonly #allowsRemoval: boolean;
  /** Ids of revisions that have been the newest one, the oldest first. */
  readonly #seen = new Set<string>();
  /** Contents that this control plane has had in force, the oldest first. */
  readonly #served = new Set<string>();

  /** `allowsRemoval`: whether every revision may remove most limits. */
  constructor(memory: RevisionMemory, allowsRemoval: boolean) {
    this.#memory = memory;
    this.#allowsRemoval = allowsRemoval;
  }

  /** A revision has become the newest one, after `before`. */
  toCandidate(
    whole: Revision,
    content: string | undefined,
    before: Candidate | undefined,
  ): Candidate {
    const saidBefore = this.#findSaidBefore(whole.id, content, before);
    addBounded(this.#seen, whole.id);
    return { whole, content, saidBefore };
  }

  noteServed(content: string): void {
    addBounded(this.#served, content);
  }

  /** Whether everybody had this content before, as far as that is remembered. */
  wasInForce(content: string): boolean {
    return this.#served.has(content) || this.#memory.wasInForce(content);
  }

  /** Whether it may remove most limits without an approval. */
  mayRemove(revision: RevisionInfo): boolean {
    return this.#allowsRemoval || saysTrailer(revision, allowRemovalTrailer);
  }

  judge(candidate: Candidate, built: BuiltSnapshots, before: RulesBefore | undefined): Judgement {
    const { author, message } = candidate.whole;
    const takenBack = this.#findTakenBack(candidate);
    const problem = takenBack ?? this.#findLargeRemoval(candidate, built, before);
    const isUndo = this.wasInForce(built.content);
    const policy = judgeByPolicy(before?.built, built, { author, message, isUndo });
    return {
      refused: problem === undefined ? policy.refused : [problem, ...policy.refused],
      warnings: policy.tolerated,
      isHeldBack: problem !== undefined && takenBack === undefined && policy.refused.length === 0,
      exception: policy.exception,
    };
  }

  /**
   * Whether other verdicts count of it now than those by which it was judged. Verdicts on the trial are for the
   * one who follows the rollout.
   */
  isOutdated(
    newest: Judged,
    { inForceId, trialId }: Readonly<Record<'inForceId' | 'trialId', string | undefined>>,
  ): boolean {
    const { whole, content, isHeldBack, invalidSinceMs } = newest;
    if (content === undefined) return false;
    // A rollout that has begun has no such word on record any more.
    const isHeldNow = !this.mayRemove(whole) && this.#findHeldBack(newest) !== undefined;
    if (whole.id === trialId) return isHeldNow;
    if (isHeldBack) return this.#isApproved(whole, content);
    if (invalidSinceMs !== undefined) return false;
    const isTakenBack = whole.id !== inForceId && this.#findTakenBack(newest) !== undefined;
    return isTakenBack || isHeldNow;
  }

  #findSaidBefore(
    id: string,
    content: string | undefined,
    before: Candidate | undefined,
  ): Said | undefined {
    if (before === undefined || content === undefined) return undefined;
    if (before.content === content) return before.saidBefore;
    const said = this.#memory.verdictOf(id, content);
    // Other control planes knew it earlier: their verdict is about this try.
    return said?.revision === id && !this.#seen.has(id) ? undefined : said;
  }

  #findTakenBack({ whole, content, saidBefore }: Candidate): Problem | undefined {
    if (content === undefined) return undefined;
    const said = this.#memory.verdictOf(whole.id, content);
    const word = takenBackBy(said, saidBefore);
    return word && toTakenBack(word.reason);
  }

  #findLargeRemoval(
    candidate: Candidate,
    { content, ruleSet }: BuiltSnapshots,
    before: RulesBefore | undefined,
  ): Problem | undefined {
    const { whole } = candidate;
    if (this.mayRemove(whole) || this.#isApproved(whole, content)) return undefined;
    const heldBack = this.#findHeldBack(candidate);
    if (heldBack !== undefined) {
      return problemOf('error', 'large-removal', '(all files)', heldBack.reason);
    }
    if (before === undefined || before.id === whole.id) return undefined;
    return findRemoval(before.built.ruleSet, ruleSet);
  }

  #isApproved({ id }: Revision, content: string): boolean {
    return this.#memory.verdictOf(id, content)?.outcome === 'approved';
  }

  /** By those that know what it would remove, also where that is not known here, or not any more. */
  #findHeldBack({ whole, content, saidBefore }: Candidate): Said | undefined {
    const inForce = this.#memory.inForce?.content;
    if (content === undefined || inForce === content) return undefined;
    return heldBackBy(this.#memory.verdictOf(whole.id, content), saidBefore, inForce);
  }
}

export function toTakenBack(reason: string): Problem {
  return problemOf('error', 'taken-back', '(all files)', `taken back: ${reason}`);
}

/** The word that takes this try back; `saidBefore` is about an earlier one. */
export function takenBackBy<Word extends Said>(
  said: Word | undefined,
  saidBefore: Said | undefined,
): Word | undefined {
  return newWord('taken_back', said, saidBefore);
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
const maxNamed = 20;

/** An error when `after` has no domain of `before`, or removes more than half of its limits and at least
 * ten; else undefined. An empty folder, a wrong path or a bad merge looks like any valid revision, and would let
 * everything pass. */
export function findRemoval(before: RuleSet, after: RuleSet): Problem | undefined {
  const kept = new Set(after.limitNames());
  const limits = before.limitNames();
  const removed = limits.filter((name) => !kept.has(name));
  const leavesNothing = before.domains.size > 0 && after.domains.size === 0;
  const takesMost = removed.length >= minRemoved && removed.length * 2 > limits.length;
  if (!leavesNothing && !takesMost) return undefined;
  const named = removed.slice(0, maxNamed).map((name) => toExcerpt(name));
  const more = removed.length - named.length;
  const list = [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ');
  const what = leavesNothing
    ? 'held back: no domain would be left'
    : `held back: ${removed.length} of ${limits.length} limits would go`;
  const hint = `if that is meant, approve the revision, or say it beforehand: '${toLine(allowRemovalTrailer)}' in the message of the commit, --allow-removal with a change`;
  return problemOf(
    'error',
    'large-removal',
    '(all files)',
    `${what}${list === '' ? '' : ` (${list})`}`,
    hint,
  );
}

/** The oldest one goes. */
function addBounded(texts: Set<string>, text: string): void {
  texts.add(text);
  const [oldest = ''] = texts;
  if (texts.size > maxSeen) texts.delete(oldest);
}
