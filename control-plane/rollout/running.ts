// The rollout that is under way, as one control plane has it. rollout.ts follows its record, steps.ts decides.
import type { Clock } from '../../shared/clock.ts';
import type { TrialState } from '../snapshot/snapshot-state.ts';
import type { RolloutPlan } from './plan.ts';
import { type Limits, type Pools, toPools } from './pools.ts';
import type { Phase } from './rollout-state.ts';

/** Times are of the monotonic clock, but for `sinceMs`. */
export interface Running {
  readonly revision: string;
  /** Wall time. */
  readonly sinceMs: number;
  readonly pools: Pools;
  /** As on record, and served here. */
  step: number;
  limits: Limits;
  phase: Phase;
  phaseSinceMs: number;
  /** Since when workers are connecting. */
  gatherSinceMs: number;
  /** One sentence for people: what it waits for. */
  text: string;
  /** Why nobody here has it any more, before that is on record. */
  withdrawn: { readonly reason: string; readonly isAutomatic: boolean } | undefined;
}

/** `startedMs`: when this control plane started. */
export function begin(
  { revision, sinceMs, groups }: TrialState,
  plan: RolloutPlan,
  startedMs: number,
  clock: Clock,
): Running {
  return {
    revision: revision.id,
    sinceMs,
    pools: toPools(plan.steps, groups),
    step: 0,
    limits: [],
    phase: 'gathering',
    phaseSinceMs: clock.monotonicMs(),
    gatherSinceMs: startedMs,
    text: '',
    withdrawn: undefined,
  };
}

export function enter(now: Running, phase: Phase, clock: Clock): void {
  if (now.phase === phase) return;
  now.phase = phase;
  now.phaseSinceMs = clock.monotonicMs();
}
