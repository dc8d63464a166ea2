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
  /** What a worker has counted in that many seconds until now. */
  take(counts: TrafficCounts, seconds: number): void;
  /** The last 15 minutes, or since the start; the oldest first, without the slots that reports may still add to: the one
   * that is not over, and the one before it. */
  read(): TrafficSlot[];
}

export const slotMs = 5_000;
const slotCount = 180;
const none: TrafficCounts = { decisions: 0, overLimit: 0, errors: 0 };

export function createTrafficHistory(clock: Clock): TrafficHistory {
  const slots = new Map<number, TrafficCounts>();
  const slotOfNow = () => Math.floor(clock.monotonicMs() / slotMs);
  const first = slotOfNow();

  function add(slot: number, { decisions, overLimit, errors }: TrafficCounts, share: number): void {
    const before = slots.get(slot) ?? none;
    slots.set(slot, {
      decisions: before.decisions + decisions * share,
      overLimit: before.overLimit + overLimit * share,
      errors: before.errors + errors * share,
    });
  }

  return {
    take(counts, seconds) {
      const nowMs = clock.monotonicMs();
      const now = slotOfNow();
      // Reports come at any time: each slot gets its share of the time that a report covers.
      const spanMs = Math.min(Math.max(seconds * 1000, 1) || 1, slotCount * slotMs);
      const startMs = nowMs - spanMs;
      for (let slot = Math.floor(startMs / slotMs); slot <= now; slot++) {
        const fromMs = Math.max(startMs, slot * slotMs);
        add(slot, counts, (Math.min(nowMs, (slot + 1) * slotMs) - fromMs) / spanMs);
      }
      for (const slot of slots.keys()) {
        if (slot <= now - slotCount) slots.delete(slot);
      }
    },
    read() {
      const now = slotOfNow();
      // Slots follow the monotonic clock; a step of the wall clock moves all of them.
      const start = Math.floor(clock.wallMs() / slotMs) - now;
      const oldest = Math.max(first, now - slotCount);
      return Array.from({ length: Math.max(0, now - 1 - oldest) }, (_, index) => {
        const slot = oldest + index;
        return { atMs: (start + slot) * slotMs, ...(slots.get(slot) ?? none) };
      });
    },
  };
}
