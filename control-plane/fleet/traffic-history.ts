// What the whole fleet decided in the last minutes, in slots of five seconds. Memory does not go by the
// number of workers.
import type { Clock } from '../../shared/clock.ts';

/** Counts of one slot. */
export interface TrafficSlot {
  /** Wall time of its start in milliseconds, a multiple of five seconds. */
  readonly atMs: number;
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
}

export type TrafficCounts = Omit<TrafficSlot, 'atMs'>;

export interface TrafficHistory {
  /** What a worker has counted since its last report. */
  take(counts: TrafficCounts): void;
  /** The last 15 minutes, or since the start; the oldest first, without the slot that is not over. */
  read(): TrafficSlot[];
}

export const slotMs = 5_000;
const slotCount = 180;
const none: TrafficCounts = { decisions: 0, overLimit: 0, errors: 0 };

export function createTrafficHistory(clock: Clock): TrafficHistory {
  const slots = new Map<number, TrafficCounts>();
  const slotOfNow = () => Math.floor(clock.monotonicMs() / slotMs);
  const first = slotOfNow();

  return {
    take(counts) {
      const now = slotOfNow();
      const before = slots.get(now) ?? none;
      slots.set(now, {
        decisions: before.decisions + counts.decisions,
        overLimit: before.overLimit + counts.overLimit,
        errors: before.errors + counts.errors,
      });
      for (const slot of slots.keys()) {
        if (slot > now - slotCount) break;
        slots.delete(slot);
      }
    },
    read() {
      const now = slotOfNow();
      // Slots follow the monotonic clock; a step of the wall clock moves all of them.
      const start = Math.floor(clock.wallMs() / slotMs) - now;
      const oldest = Math.max(first, now - slotCount);
      return Array.from({ length: now - oldest }, (_, index) => {
        const slot = oldest + index;
        return { atMs: (start + slot) * slotMs, ...(slots.get(slot) ?? none) };
      });
    },
  };
}
