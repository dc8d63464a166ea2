// The decisions of the whole fleet in the last hour, in slots of five seconds. Memory does not depend on the number of
// workers or rules. A slot that no report covers is unknown, which differs from a slot without decisions.
import type { Clock } from '../../../shared/clock.ts';
import { openSlots, Slots, slotMs } from './slots.ts';

/** Counts of one slot. */
export interface TrafficSlot {
  /** Wall time of its start in milliseconds, a multiple of five seconds. */
  readonly atMs: number;
  readonly decisions: number;
  readonly overLimit: number;
  readonly errors: number;
}

export type TrafficCounts = Omit<TrafficSlot, 'atMs'>;

/** An hour. */
const slotCount = 3_600_000 / slotMs;
const none: TrafficCounts = { decisions: 0, overLimit: 0, errors: 0 };

export class TrafficHistory {
  readonly #slots: Slots;
  readonly #known = new Map<number, TrafficCounts>();

  constructor(clock: Clock) {
    this.#slots = new Slots(clock);
  }

  /** Adds the decisions that a worker has counted in the last `seconds` seconds. */
  add({ decisions, overLimit, errors }: TrafficCounts, seconds: number): void {
    const known = this.#known;
    for (const { slot, share, isFromStart } of this.#slots.share(seconds, slotCount)) {
      // After a period without reports, only the end of the first slot would be known.
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
      if (this.#isOld(slot)) known.delete(slot);
    }
  }

  /** The known slots of the last hour, oldest first, without those that reports may still add to. */
  read(): TrafficSlot[] {
    const end = this.#slots.now() - openSlots;
    return [...this.#known]
      .filter(([slot]) => slot <= end && !this.#isOld(slot))
      .sort(([a], [b]) => a - b)
      .map(([slot, counts]) => ({ atMs: this.#slots.toWallMs(slot), ...counts }));
  }

  /** Restores the slots that an earlier process recorded. */
  restore(slots: readonly TrafficSlot[]): void {
    for (const { atMs, ...counts } of slots) {
      const slot = this.#slots.ofWallMs(atMs);
      if (slot < this.#slots.now() && !this.#isOld(slot)) this.#known.set(slot, counts);
    }
  }

  #isOld(slot: number): boolean {
    return slot < this.#slots.now() - openSlots + 1 - slotCount;
  }
}
