// A rollout in the format of the admin API, and in a few words. Pure.
import Type from 'typebox';
import { toCountText } from '../../../shared/count-text.ts';
import { orNull, time, toTime } from '../api-shape.ts';
import { inForceOf } from '../record/outcomes.ts';
import type { MemoryState } from '../record/record-state.ts';
import type { SnapshotState } from '../snapshot/snapshot-state.ts';
import { toShortId } from '../store/revision.ts';
import { fewPoints, halfAgain, maxErrorPoints } from './judgement.ts';
import type { RolloutPlan } from './plan.ts';

export const rolloutJson = Type.Object(
  {
    id: Type.Optional(
      orNull(Type.String({ description: 'Null before it begins; older ones do not include it' })),
    ),
    revision: Type.String(),
    since: time,
    /** Counted from 1; 0 before any worker has the revision. */
    step: Type.Integer(),
    /** The number of steps; the last one is all workers. */
    steps: Type.Integer(),
    /** `gathering`: workers are still connecting. `spreading`: not all workers of the step have the revision.
     * `holding`: all have it, and are watched. `silent`: too little traffic to judge, so they are watched for a second
     * time. `paused`: an operator has to continue the rollout. `indivisible`: no share of the workers can be chosen, so
     * the rollout waits for an approval. `taking_back`: the revision is being removed from the workers that have it. */
    phase: Type.Union([
      Type.Literal('gathering'),
      Type.Literal('spreading'),
      Type.Literal('holding'),
      Type.Literal('silent'),
      Type.Literal('paused'),
      Type.Literal('indivisible'),
      Type.Literal('taking_back'),
    ]),
    text: Type.String({ description: 'What it waits for' }),
    /** `chosen`: the workers of the steps so far; `having`: those on which the revision is in force. */
    workers: Type.Object({
      having: Type.Integer(),
      chosen: Type.Integer(),
      others: Type.Integer(),
    }),
    reach: Type.String({ description: 'Such as 1 of 3 workers has it, 5 others do not' }),
    /** The control plane that decides; null if there is only one, and while none does. */
    leader: Type.Union([
      Type.Object({
        name: Type.String(),
        isThis: Type.Boolean({ description: 'Whether it is the one that gives this answer' }),
        since: Type.String({
          format: 'date-time',
          description: 'As the control plane that answers knows it',
        }),
        after: Type.Union([Type.String(), Type.Null()], {
          description: 'The previous leader, which has stopped',
        }),
      }),
      Type.Null(),
    ]),
  },
  { title: 'Rollout' },
);
export type RolloutJson = Type.Static<typeof rolloutJson>;

export interface RolloutState extends Required<RolloutJson> {
  /** The wall time since which this control plane decides, also if it is the only one. Undefined while it does not. */
  readonly ledHereSinceMs: number | undefined;
}

export function toRolloutJson(state: RolloutState | undefined): RolloutJson | null {
  if (state === undefined) return null;
  const { ledHereSinceMs: _, ...rollout } = state;
  return rollout;
}

/** The plan that brings a revision to the workers, and the thresholds at which it is taken back. */
export const rolloutPlanJson = Type.Object(
  {
    /** The steps before the last one, which is all workers. A node group may have its own. */
    steps: Type.Array(Type.Object({ percent: Type.Number(), holdSeconds: Type.Number() })),
    errorPoints: Type.Number({
      description: 'How much the share of errors may be above that of the other workers',
    }),
    overLimitPoints: Type.Number({
      description: 'How much the share over limit may be above that of the other workers, if it is',
    }),
    fewPoints: Type.Number({ description: 'these are enough where it is not chance, and' }),
    overLimitFactor: Type.Number({ description: 'also that many times as high' }),
  },
  { title: 'RolloutPlan' },
);
export type RolloutPlanJson = Type.Static<typeof rolloutPlanJson>;

export function toRolloutPlanJson({ steps, overLimitPoints }: RolloutPlan): RolloutPlanJson {
  return {
    steps: steps.map(({ percent, holdMs }) => ({ percent, holdSeconds: holdMs / 1000 })),
    errorPoints: maxErrorPoints,
    overLimitPoints,
    fewPoints,
    overLimitFactor: halfAgain,
  };
}

/** The last verdict on a revision that was not simply served, or the revision that came into force after it. */
export const lastVerdictJson = Type.Object(
  {
    revision: Type.String(),
    outcome: Type.Union([
      Type.Literal('held_back'),
      Type.Literal('approved'),
      Type.Literal('taken_back'),
      Type.Literal('in_force'),
    ]),
    reason: Type.String(),
    by: orNull(Type.String({ description: 'Null for a control plane' })),
    at: time,
  },
  { title: 'LastWord' },
);
export type LastVerdictJson = Type.Static<typeof lastVerdictJson>;

/** Null if every revision on record was simply served. */
export function toLastVerdictJson({
  verdicts: [last],
  outcomes,
}: Pick<MemoryState, 'verdicts' | 'outcomes'>): LastVerdictJson | null {
  if (last === undefined) return null;
  const inForce = inForceOf(outcomes);
  const isLater =
    inForce !== undefined && inForce.atMs > last.atMs && !inForce.revisions.includes(last.revision);
  const { revision, outcome, reason, by, atMs } = isLater
    ? { ...inForce, revision: inForce.revisions[0] ?? '', outcome: 'in_force' as const }
    : last;
  return { revision, outcome, reason, by: by === '' ? null : by, at: toTime(atMs) };
}

/** Such as `; a:18001 leads since 2026-11-24T10:00:00.000Z after b:18001`; empty if there is only one control plane. */
export function toLeaderText(leader: RolloutJson['leader']): string {
  if (leader === null) return '';
  const { name, since, after } = leader;
  return `; ${name} leads since ${since}${after === null ? '' : ` after ${after}`}`;
}

/** A control plane that does not lead knows only its own workers. */
export function toReachText(
  { having, chosen, others }: RolloutJson['workers'],
  leader: RolloutJson['leader'],
): string {
  const whose = leader === null || leader.isThis ? '' : ' of this control plane';
  const has = having === 1 || chosen === 1 ? 'has' : 'have';
  const rest = others === 1 ? '1 other does not' : `${others} others do not`;
  return `${having} of ${toCountText(chosen, 'worker')}${whose} ${has} it, ${rest}`;
}

/** The text that follows the name of the newest revision. */
export function toRolloutText(
  newest: NonNullable<SnapshotState['newest']>,
  { revision, step, steps, phase, text, reach, leader }: RolloutState,
): string {
  if (phase === 'taking_back') return `is taken back (${text}${toLeaderText(leader)})`;
  const where =
    newest.revision.id === revision
      ? 'is being rolled out'
      : `waits for the rollout of ${toShortId(revision)}`;
  // A text about a user already contains the word.
  const state = phase !== 'paused' || text.startsWith('paused by ') ? text : `paused (${text})`;
  return `${where} (step ${step} of ${steps}, ${reach}${state === '' ? '' : `; ${state}`}${toLeaderText(leader)})`;
}
