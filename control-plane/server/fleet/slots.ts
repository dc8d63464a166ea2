// Slots of five seconds of the wall clock, in which reports are counted for the charts. A report covers some time
// until now, so that each slot gets its share of it.
import type { Clock } from '../../../shared/clock.ts';

export const slotMs = 5_000;
/** Of the newest slots that reports which are in time may still add to: the one that is not over, and the one before. */
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

  /** The number of the slot that is not over. */
  now(): number {
    return Math.floor(this.#nowMs() / slotMs);
  }

  /** The milliseconds that are left of it. */
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

  /** The shares of a report of that many seconds until now, the oldest slot first; their sum is 1. A time that no report
   * can cover is one within `most` slots. */
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
