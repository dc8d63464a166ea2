// The facts that a control plane knows when it decides on a rollout. Plain data; fleet-watch.ts sees the workers.
import type { TrialState } from '../snapshot/snapshot-state.ts';
import type { WorkerFacts } from './facts.ts';
import type { Judgement } from './judgement.ts';
import type { PlacedWorker } from './pools.ts';

/** A worker reports every five seconds, and what it counts is known from its second report: before, silence is none. */
export const reportedMs = 15_000;

/** A worker that the revision changes something for, of any control plane, with the state of what it is given. */
export interface Member extends PlacedWorker, Readonly<Pick<WorkerFacts, 'name' | 'state'>> {
  /** Whether it is given the revision. */
  readonly isChosen: boolean;
  /** Why it refuses the revision, and for how long. */
  readonly refusal: { readonly text: string; readonly forMs: number } | undefined;
  /** For how long it has neither accepted nor refused what it is given. */
  readonly silentForMs: number;
  /** Whether it has acknowledged it, and does not decide by it. */
  readonly isUnused: boolean;
}

/** Workers whose connection broke without a goodbye in this step, and that have not come back. */
export interface Gone {
  readonly having: number;
  /** The same by pool. */
  readonly havingOf: ReadonlyMap<number, number>;
  readonly others: number;
  /** They may be at another control plane, which is not asked. */
  readonly mayBeElsewhere: boolean;
}

/**
 * The workers as they are seen. Times are counted while this process watches: time during which it stood still is
 * no evidence.
 */
export interface Seen {
  readonly members: readonly Member[];
  /** The number of all workers, those included that get the same with or without the revision. */
  readonly connected: number;
  /** The pools that have any worker. */
  readonly peopled: ReadonlySet<number>;
  readonly gone: Gone;
  /** The judgement of the figures since the step began here. */
  readonly judgement: Judgement;
  /** The facts of other control planes that are not known, for people. */
  readonly unknown: string | undefined;
  /** Whether another control plane can never follow: its store does not have the revision any more. */
  readonly isLacked: boolean;
  /** Whether the workers that reconnect after a start have come, as far as one can tell. */
  readonly isGathered: boolean;
  /** Whether the workers that were given it have all left, and may still come back: to another control plane. */
  readonly isAwaited: boolean;
  /** How long all workers of the step have had it. */
  readonly heldMs: number;
}

export interface View extends Seen {
  readonly trial: Pick<TrialState, 'content' | 'supersedes'> & {
    readonly revision: { readonly id: string };
  };
  /** The newest revision, where that is another one: it waits for the end of this rollout, or is invalid or held
   * back. */
  readonly newer: { readonly revision: string; readonly isWaiting: boolean } | undefined;
  /** Whether this control plane wrote the record. */
  readonly leads: boolean;
  /** Whether nobody decides on the record. */
  readonly isVacant: boolean;
  /** Whether the control plane that leads gives signs of life. */
  readonly isLed: boolean;
}
