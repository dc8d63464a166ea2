// The state of a rollout, for API, commands and metrics.

/** Plain data, for the API and the status command. */
export interface RolloutState {
  readonly revision: string;
  /** Wall time. */
  readonly sinceMs: number;
  /** Counted from 1; 0 before any worker has it. */
  readonly step: number;
  readonly steps: number;
  readonly phase: Phase;
  /** One sentence for people: what it waits for. */
  readonly text: string;
  /** Of all control planes where this one leads, else of this one. */
  readonly workers: { readonly having: number; readonly chosen: number; readonly others: number };
  /** The control plane that decides; undefined where there is only this one, and while none does. */
  readonly leader: RolloutLeader | undefined;
  /** Since when this control plane decides, also where it is the only one: wall time. Undefined while it does not. */
  readonly ledHereSinceMs: number | undefined;
}

export interface RolloutLeader {
  readonly name: string;
  readonly isThis: boolean;
  /** As it is known here: wall time. */
  readonly sinceMs: number;
  /** The leader before, which has stopped; undefined where this one began. */
  readonly after: string | undefined;
}

/** `gathering`: workers are still connecting. `spreading`: not all of the step have it. `holding`: they
 * have it, and are watched. `silent`: too little traffic to judge, watched for a second hold. `indivisible`: no
 * share of the workers can be made, and it waits for an approval. `taking_back`: no worker of this control plane has it
 * any more, and that is put on record. */
export type Phase =
  | 'gathering'
  | 'spreading'
  | 'holding'
  | 'silent'
  | 'paused'
  | 'indivisible'
  | 'taking_back';
