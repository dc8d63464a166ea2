// The decisions of the whole fleet in the last hour, in slots of five seconds. Memory does not go by the number
// of workers or rules. A slot that no report covers is not known, which is another thing than nothing to decide.
import type { Clock } from '../../../shared/clock.ts';
import { createSlots, openSlots, slotMs } from './slots.ts';

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
  /** Takes the decisions that a worker has counted in that many seconds until now. */
  take(counts: TrafficCounts, seconds: number): void;
  /** The known slots of the last hour, the oldest first, without those that reports may still add to. */
  read(): TrafficSlot[];
  /** Takes the slots that an earlier process knew. */
  restore(slots: readonly TrafficSlot[]): void;
}

/** An hour. */
const slotCount = 3_600_000 / slotMs;
const none: TrafficCounts = { decisions: 0, overLimit: 0, errors: 0 };

export function createTrafficHistory(clock: Clock): TrafficHistory {
  const slots = createSlots(clock);
  const known = new Map<number, TrafficCounts>();

  function isOld(slot: number): boolean {
    return slot < slots.now() - openSlots + 1 - slotCount;
  }

  return {
    take({ decisions, overLimit, errors }, seconds) {
      for (const { slot, share, isFromStart } of slots.share(seconds, slotCount)) {
        // Of the first slot after a time without reports only the end would be known.
        if (!isFromStart && !known.has(slot) && !known.has(slot - 1)) continue;
        const before = known.get(slot) ?? none;
        known.set(slot, {
          decisions: before.decisions + decisions * share,
          overLimit: before.overLimit + overLimit * share,
          errors: before.errors + errors * share,
        });
      }
      if (known.size <= slotCount + openSlots) return;
      for (const slot of known.keys()) {
        if (isOld(slot)) known.delete(slot);
      }
    },
    read() {
      const end = slots.now() - openSlots;
      return [...known]
        .filter(([slot]) => slot <= end && !isOld(slot))
        .sort(([a], [b]) => a - b)
        .map(([slot, counts]) => ({ atMs: slots.toWallMs(slot), ...counts }));
    },
    restore(all) {
      for (const { atMs, ...counts } of all) {
        const slot = slots.ofWallMs(atMs);
        if (slot < slots.now() && !isOld(slot)) known.set(slot, counts);
      }
    },
  };
}
