// Keeps a message that comes again and again from flooding the log.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';

/** Texts remembered at once; what comes beyond is counted together, so that a caller who varies the
 * text floods nothing either. */
const maxTexts = 32;
const intervalMs = 1000;

export interface RepeatedLog {
  /** Writes the text at once if it is new; repetitions within a second become one line with their
   * number at its end. */
  warning(text: string): void;
  /** Writes what is counted and forgets it. */
  flush(): void;
}

export function createRepeatedLog({
  log,
  clock,
}: {
  readonly log: Log;
  readonly clock: Clock;
}): RepeatedLog {
  const repetitions = new Map<string, number>();
  let others = 0;
  let cancelTimer: (() => void) | undefined;

  function writeCounts(): boolean {
    let written = false;
    for (const [text, count] of repetitions) {
      if (count === 0) {
        repetitions.delete(text);
        continue;
      }
      log.warning(`${text} (${count} more in the last second)`);
      repetitions.set(text, 0);
      written = true;
    }
    if (others > 0) log.warning(`${others} more warnings of other kinds in the last second`);
    written ||= others > 0;
    others = 0;
    return written;
  }

  function tick(): void {
    // A text stays remembered while it keeps coming, so that a storm costs one line a second.
    cancelTimer = writeCounts() || repetitions.size > 0 ? clock.after(intervalMs, tick) : undefined;
  }

  return {
    warning(text) {
      const count = repetitions.get(text);
      if (count !== undefined) repetitions.set(text, count + 1);
      else if (repetitions.size >= maxTexts) others++;
      else {
        repetitions.set(text, 0);
        log.warning(text);
      }
      cancelTimer ??= clock.after(intervalMs, tick);
    },
    flush() {
      cancelTimer?.();
      cancelTimer = undefined;
      writeCounts();
      repetitions.clear();
    },
  };
}
