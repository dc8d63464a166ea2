// Slots of five seconds of the wall clock, in which reports are counted for the charts. A report covers some time
// until now, so that each slot gets its share of it.
import type { Clock } from '../../../shared/clock.ts';

export const slotMs = 5_000;
/** Of the newest slots that reports which are in time may still add to: the one that is not over, and the one before. */
export const openSlots = 2;

export interface Slots {
  /** The number of the slot that is not over. */
  now(): number;
  /** The milliseconds that are left of it. */
  leftMs(): number;
  /** Wall time of the start of a slot in milliseconds, a multiple of five seconds. */
  toWallMs(slot: number): number;
  /** The number of the slot that began at this wall time, a multiple of five seconds. */
  ofWallMs(atMs: number): number;
  /** The shares of a report of that many seconds until now, the oldest slot first; their sum is 1. A time that no report
   * can cover is one within `most` slots. */
  share(seconds: number, most: number): SlotShare[];
}

export interface SlotShare {
  readonly slot: number;
  readonly share: number;
  /** Whether the report covers the slot from its start. */
  readonly isFromStart: boolean;
}

/** Numbers follow the monotonic clock: a step of the wall clock moves all slots. */
export function createSlots(clock: Clock): Slots {
  const offsetMs = clock.wallMs() - clock.monotonicMs();
  const nowMs = () => clock.monotonicMs() + offsetMs;
  const moved = () => Math.round((clock.wallMs() - nowMs()) / slotMs);
  return {
    now: () => Math.floor(nowMs() / slotMs),
    leftMs: () => slotMs - (nowMs() % slotMs),
    toWallMs: (slot) => (slot + moved()) * slotMs,
    ofWallMs: (atMs) => Math.round(atMs / slotMs) - moved(),
    share(seconds, most) {
      const endMs = nowMs();
      const spanMs = Math.min(Math.max(seconds * 1000, 1) || 1, most * slotMs);
      const startMs = endMs - spanMs;
      const shares: SlotShare[] = [];
      for (let slot = Math.floor(startMs / slotMs); slot * slotMs < endMs; slot++) {
        const fromMs = Math.max(startMs, slot * slotMs);
        const toMs = Math.min(endMs, (slot + 1) * slotMs);
        shares.push({
          slot,
          share: (toMs - fromMs) / spanMs,
          isFromStart: startMs <= slot * slotMs,
        });
      }
      return shares;
    },
  };
}
