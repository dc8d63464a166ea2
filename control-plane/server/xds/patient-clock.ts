// A clock for waits that clients have to end. Bytes that a client sent while this process stood still have not
// been read yet, so such a time counts as two seconds at most, however long it was.
import type { Clock } from '../../../shared/clock.ts';

const beatMs = 1_000;
const longestBeatMs = 2_000;

/** Its times are those of `clock`. */
export function createPatientClock(clock: Clock): Clock {
  let waiting = 0;
  let isBeating = false;
  let beatAtMs = clock.monotonicMs();
  let missedBeforeMs = 0;

  /** Time that does not count. */
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
        // Timers may be early by a part of a millisecond.
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
