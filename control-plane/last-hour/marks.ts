// The events of the last hour that a chart marks: revisions, rollouts, and counters that people set back. Kept
// for an hour, in order; of too many the oldest are left out.
import Type from 'typebox';
import type { Clock } from '../../shared/clock.ts';
import { toExcerpt } from '../../shared/text-excerpt.ts';

/** `in_force`: all workers get a revision from now on. `rollout`: some get it. `taken_back`: those have lost it. */
export const markKind = Type.Union([
  Type.Literal('in_force'),
  Type.Literal('rollout'),
  Type.Literal('taken_back'),
  Type.Literal('reset'),
]);
export type MarkKind = Type.Static<typeof markKind>;

export interface Mark {
  /** Wall time in milliseconds. */
  readonly atMs: number;
  readonly kind: MarkKind;
  /** Undefined of what is about no revision. */
  readonly revision: string | undefined;
  /** One sentence for people; foreign text in it is not escaped. */
  readonly text: string;
}

export interface Marks {
  /** It happens now. */
  note(mark: Omit<Mark, 'atMs'>): void;
  /** The marks of the last hour, the oldest first. */
  read(): readonly Mark[];
  /** Takes the marks of an earlier process. */
  restore(marks: readonly Mark[]): void;
}

export const maxMarks = 100;
export const maxMarkTextLength = 300;
const hourMs = 3_600_000;

export function createMarks(clock: Clock): Marks {
  let known: readonly Mark[] = [];

  function read(): readonly Mark[] {
    const nowMs = clock.wallMs();
    return known.filter(({ atMs }) => atMs <= nowMs && nowMs - atMs <= hourMs);
  }

  return {
    note(mark) {
      const text = toExcerpt(mark.text, maxMarkTextLength);
      known = [...read(), { ...mark, text, atMs: clock.wallMs() }].slice(-maxMarks);
    },
    read,
    restore(marks) {
      known = [...marks, ...known].slice(-maxMarks);
    },
  };
}
