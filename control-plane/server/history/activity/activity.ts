// Requests of users to this control plane, and its own actions: the last lines of the audit log, for the console and
// `audit`. Bounded; the oldest are dropped first.
import type { Clock } from '../../../../shared/clock.ts';
import { type AuditedChange, withoutMiddle } from './audit.ts';

export interface ActivityEntry
  extends Pick<AuditedChange, 'who' | 'what' | 'before' | 'after' | 'outcome'> {
  /** Wall time in milliseconds. */
  readonly atMs: number;
}

export interface Activity {
  /** The change happens now. */
  note(change: AuditedChange): void;
  /** The newest entry first. */
  read(): readonly ActivityEntry[];
  /** Restores the entries of an earlier process, the newest first. */
  restore(entries: readonly ActivityEntry[]): void;
}

export const maxEntries = 1_000;
/** Characters at each end of a text. */
const maxEndLength = 300;
export const maxTextLength = 2 * maxEndLength + 60;

export function createActivity(clock: Clock): Activity {
  let entries: readonly ActivityEntry[] = [];
  const cut = (text: string) => withoutMiddle(text, maxEndLength);
  return {
    note({ who, what, before, after, outcome }) {
      const entry = {
        atMs: clock.wallMs(),
        who: cut(who),
        what: cut(what),
        outcome: cut(outcome),
        before: before && cut(before),
        after: after && cut(after),
      };
      entries = [entry, ...entries].slice(0, maxEntries);
    },
    read: () => entries,
    restore(earlier) {
      entries = [...entries, ...earlier].slice(0, maxEntries);
    },
  };
}
