// One line per event, and never a storm: what happens to many streams at once is said once at once,
// and once more with the number of times.
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';

export interface EventLog {
  /** Events of one kind are counted together. Callers give few kinds, clients none. */
  note(level: 'info' | 'warning', kind: string, message: string): void;
  /** Writes what was counted. */
  flush(): void;
}

export interface EventLogDeps {
  readonly log: Log;
  readonly clock: Clock;
}

const quietMs = 5_000;

interface Counted {
  readonly level: 'info' | 'warning';
  latest: string;
  count: number;
  readonly cancel: () => void;
}

export function createEventLog({ log, clock }: EventLogDeps): EventLog {
  const kinds = new Map<string, Counted>();

  function close(kind: string, counted: Counted): void {
    kinds.delete(kind);
    counted.cancel();
    if (counted.count === 0) return;
    if (counted.count === 1) log[counted.level](counted.latest);
    else log[counted.level](`${counted.latest} (and ${counted.count - 1} more like it)`);
  }

  return {
    note(level, kind, message) {
      const known = kinds.get(kind);
      if (known !== undefined) {
        known.latest = message;
        known.count++;
        return;
      }
      log[level](message);
      const counted: Counted = {
        level,
        latest: message,
        count: 0,
        cancel: clock.after(quietMs, () => close(kind, counted)),
      };
      kinds.set(kind, counted);
    },
    flush() {
      for (const [kind, counted] of [...kinds]) close(kind, counted);
    },
  };
}
