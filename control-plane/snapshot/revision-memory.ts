// What outlives a control plane of the revisions before: given by rollout/record-keeper.ts.
import { isDeepStrictEqual } from 'node:util';

export interface RevisionMemory {
  /** False until it has been read, here or beside the rules. */
  readonly isKnown: boolean;
  /** What everybody had when this was written last; undefined where nothing is remembered. */
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

/** The word that takes this try back; `saidBefore` is about an earlier one. */
export function takenBackBy<Word extends Said>(
  said: Word | undefined,
  saidBefore: Said | undefined,
): Word | undefined {
  return newWord('taken_back', said, saidBefore);
}

/** The word that holds this try back. What would be removed does not depend on the try, but on what everybody has. */
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
