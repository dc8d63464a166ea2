// The facts that a control plane knows when it decides on a rollout. Plain data; fleet-watch.ts derives those of the
// workers.
import type { TrialState } from '../snapshot/snapshot-state.ts';
import type { WorkerFacts } from './facts.ts';
import type { Judgement } from './judgement.ts';
import type { OrderedWorker } from './pools.ts';

/** A worker reports every five seconds, and its counts are known from its second report on: until then it does not
 * count as silent. */
export const reportedMs = 15_000;

/** A worker of any control plane for which the revision changes something, with the state of what it is given. */
export interface Member extends OrderedWorker, Readonly<Pick<WorkerFacts, 'name' | 'state'>> {
  /** Whether the worker is given the revision. */
  readonly isChosen: boolean;
  /** Why the worker refuses the revision, and for how long. */
  readonly refusal: { readonly text: string; readonly forMs: number } | undefined;
  /** How long the worker has neither accepted nor refused what it is given. */
  readonly silentForMs: number;
  /** Whether the worker has acknowledged the revision but does not decide by it. */
  readonly isUnused: boolean;
}

/** Workers whose connection broke without a goodbye in this step and that have not reconnected. */
export interface Gone {
  readonly having: number;
  /** The number of gone workers with the revision by pool. */
  readonly havingOf: ReadonlyMap<number, number>;
  readonly others: number;
  /** Whether they may be connected to another control plane, which is not asked. */
  readonly mayBeElsewhere: boolean;
}

/** The observed workers. Times are counted while this process watches: time for which it was stopped is no evidence. */
export interface Seen {
  readonly members: readonly Member[];
  /** The number of all workers, including those for which the revision changes nothing. */
  readonly connected: number;
  /** The pools that have any workers. */
  readonly peopled: ReadonlySet<number>;
  readonly gone: Gone;
  /** The judgement of the figures since the step began here. */
  readonly judgement: Judgement;
  /** The facts of other control planes that are missing, human-readable. */
  readonly unknown: string | undefined;
  /** Whether another control plane can never follow: its store no longer has the revision. */
  readonly isLacked: boolean;
  /** Whether the workers that reconnect after a start have done so, as far as can be known. */
  readonly isGathered: boolean;
  /** Whether all workers that were given the revision have left and may still reconnect, to another control plane. */
  readonly isAwaited: boolean;
  /** How long all workers of the step have had it. */
  readonly heldMs: number;
}

export interface View extends Seen {
  readonly trial: Pick<TrialState, 'content' | 'supersedes'> & {
    readonly revision: { readonly id: string };
  };
  /** The newest revision if it is not the one on trial: it waits for the end of this rollout, or is invalid or held
   * back. */
  readonly newer: { readonly revision: string; readonly isWaiting: boolean } | undefined;
  /** Whether this control plane wrote the record. */
  readonly leads: boolean;
  /** Whether no control plane decides on the record. */
  readonly isVacant: boolean;
  /** Whether the control plane that leads shows signs of life. */
  readonly isLed: boolean;
}
