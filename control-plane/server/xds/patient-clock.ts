// A clock for waits that clients must end. Bytes that arrived while this process was stalled have not been read yet, so
// any stall counts as at most two seconds.
import type { Clock } from '../../../shared/clock.ts';

const beatMs = 1_000;
const longestBeatMs = 2_000;

/** Returns a clock with the same times as `clock`. */
export function createPatientClock(clock: Clock): Clock {
  let waiting = 0;
  let isBeating = false;
  let beatAtMs = clock.monotonicMs();
  let missedBeforeMs = 0;

  /** Stalled time, which does not count. */
  function missedMs(): number {
    return missedBeforeMs + Math.max(0, clock.monotonicMs() - beatAtMs - longestBeatMs);
  }

  const countedMs = (): number => clock.monotonicMs() - missedMs();

  function beat(): void {
    missedBeforeMs = missedMs();
    beatAtMs = clock.monotonicMs();
    isBeating = waiting > 0;
    if (isBeating) clock.after(beatMs, beat);
  }

  function startBeating(): void {
    if (isBeating) return;
    isBeating = true;
    beatAtMs = clock.monotonicMs();
    clock.after(beatMs, beat);
  }

  return {
    wallMs: clock.wallMs,
    monotonicMs: clock.monotonicMs,
    after(delayMs, task) {
      waiting++;
      startBeating();
      const dueMs = countedMs() + delayMs;
      let isOver = false;
      let cancelTimer = clock.after(delayMs, runWhenDue);

      function runWhenDue(): void {
        const leftMs = dueMs - countedMs();
        // Timers may fire early by a fraction of a millisecond.
        if (leftMs >= 1) cancelTimer = clock.after(leftMs, runWhenDue);
        else {
          end();
          task();
        }
      }

      function end(): void {
        if (isOver) return;
        isOver = true;
        waiting--;
        cancelTimer();
      }

      return end;
    },
  };
}
