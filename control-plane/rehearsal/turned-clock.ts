// A clock that stands still between two requests, and is turned to the moment of each.
import type { Clock } from '../../shared/clock.ts';

export interface TurnedClock extends Clock {
  /** Milliseconds of wall time. Back, too, as a host's clock may be set: the monotonic time then stays. */
  turnTo(wallMs: number): void;
}

export function createTurnedClock(startMs: number): TurnedClock {
  let wall = startMs;
  let monotonic = 0;
  return {
    wallMs: () => wall,
    monotonicMs: () => monotonic,
    /** Nothing in a rehearsal waits. */
    after: () => () => {},
    turnTo(wallMs) {
      wall = wallMs;
      monotonic = Math.max(monotonic, wallMs - startMs);
    },
  };
}
