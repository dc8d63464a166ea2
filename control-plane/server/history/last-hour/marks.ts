// The events of the last hour that a chart marks: revisions, rollouts, outages, workers and control planes that
// connected or left, and actions of users. Kept for an hour, in order; beyond the limit the oldest are dropped.
import Type from 'typebox';
import type { Clock } from '../../../../shared/clock.ts';
import { toExcerpt } from '../../../../shared/text-excerpt.ts';

/** `in_force`: all workers get a revision from now on. `rollout`: some get it. `taken_back`: those have lost it.
 * `outage`: callers get answers other than those of the rules. `recovered`: they no longer do. */
export const markKind = Type.Union([
  Type.Literal('in_force'),
  Type.Literal('rollout'),
  Type.Literal('taken_back'),
  Type.Literal('held_back'),
  Type.Literal('invalid'),
  Type.Literal('reset'),
  Type.Literal('lift'),
  Type.Literal('outage'),
  Type.Literal('recovered'),
  Type.Literal('workers'),
  Type.Literal('control_plane'),
]);
export type MarkKind = Type.Static<typeof markKind>;

export interface Mark {
  /** Wall time in milliseconds. */
  readonly atMs: number;
  readonly kind: MarkKind;
  /** Undefined for an event that concerns no revision. */
  readonly revision: string | undefined;
  /** One human-readable sentence; foreign text in it is not escaped. */
  readonly text: string;
}

export interface Marks {
  /** Adds a mark for now, or for `atMs` where given. `replaced`: an earlier mark that it replaces. Returns the mark. */
  note(mark: Omit<Mark, 'atMs'> & Partial<Pick<Mark, 'atMs'>>, replaced?: Mark): Mark;
  /** The marks of the last hour, the oldest first. */
  read(): readonly Mark[];
  /** Restores the marks of an earlier process. */
  restore(marks: readonly Mark[]): void;
}

export const maxMarks = 400;
export const maxMarkTextLength = 300;
const hourMs = 3_600_000;

export function createMarks(clock: Clock): Marks {
  let known: readonly Mark[] = [];

  function read(): readonly Mark[] {
    const nowMs = clock.wallMs();
    return known.filter(({ atMs }) => atMs <= nowMs && nowMs - atMs <= hourMs);
  }

  return {
    note(mark, replaced) {
      const text = toExcerpt(mark.text, maxMarkTextLength);
      const noted = { ...mark, text, atMs: mark.atMs ?? clock.wallMs() };
      const others = read().filter((each) => each !== replaced);
      known = [...others, noted].sort((a, b) => a.atMs - b.atMs).slice(-maxMarks);
      return noted;
    },
    read,
    restore(marks) {
      known = [...marks, ...known].slice(-maxMarks);
    },
  };
}
