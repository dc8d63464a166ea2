// Slots of five seconds of the wall clock, to which reports are assigned for the charts. A report covers some time
// until now, and each slot gets its share of it.
import type { Clock } from '../../../shared/clock.ts';

export const slotMs = 5_000;
/** Number of newest slots that timely reports may still add to: the current one and the previous one. */
export const openSlots = 2;

export interface SlotShare {
  readonly slot: number;
  readonly share: number;
  /** Whether the report covers the slot from its start. */
  readonly isFromStart: boolean;
}

/** Numbers follow the monotonic clock: a step of the wall clock moves all slots. */
export class Slots {
  readonly #clock: Clock;
  readonly #offsetMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#offsetMs = clock.wallMs() - clock.monotonicMs();
  }

  /** The number of the current slot. */
  now(): number {
    return Math.floor(this.#nowMs() / slotMs);
  }

  /** The remaining milliseconds of the current slot. */
  leftMs(): number {
    return slotMs - (this.#nowMs() % slotMs);
  }

  /** Wall time of the start of a slot in milliseconds, a multiple of five seconds. */
  toWallMs(slot: number): number {
    return (slot + this.#moved()) * slotMs;
  }

  /** The number of the slot that began at this wall time, a multiple of five seconds. */
  ofWallMs(atMs: number): number {
    return Math.round(atMs / slotMs) - this.#moved();
  }

  /** The shares of a report on the last `seconds` seconds, oldest slot first; their sum is 1. A period that is too long
   * for a report is cut to `most` slots. */
  share(seconds: number, most: number): SlotShare[] {
    const endMs = this.#nowMs();
    const spanMs = Math.min(Math.max(seconds * 1000, 1) || 1, most * slotMs);
    const startMs = endMs - spanMs;
    const shares: SlotShare[] = [];
    for (let slot = Math.floor(startMs / slotMs); slot * slotMs < endMs; slot++) {
      const fromMs = Math.max(startMs, slot * slotMs);
      const toMs = Math.min(endMs, (slot + 1) * slotMs);
      const isFromStart = startMs <= slot * slotMs;
      shares.push({ slot, share: (toMs - fromMs) / spanMs, isFromStart });
    }
    return shares;
  }

  #nowMs(): number {
    return this.#clock.monotonicMs() + this.#offsetMs;
  }

  #moved(): number {
    return Math.round((this.#clock.wallMs() - this.#nowMs()) / slotMs);
  }
}
