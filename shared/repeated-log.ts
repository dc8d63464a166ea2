// Keeps repeated events from flooding the log: logs the first, then at most one line per interval with the
// number of events, and the end once. Callers choose level and text.
import type { Clock } from './clock.ts';
import { owned } from './owned-text.ts';

export interface RepeatedLog {
  /**
   * `text` is one sentence without a final full stop. Reports with the same key are about one matter; a line for several
   * reports has the text of the latest.
   */
  report(text: string, key?: string): void;
  /**
   * The matter is over. Returns how long it lasted and how often it was reported, for the caller to log; undefined when
   * it was never logged.
   */
  recover(key?: string): { readonly seconds: number; readonly times: number } | undefined;
  /** Logs the reports that were only counted so far, and forgets everything. */
  flush(): void;
}

export interface RepeatedLogDeps {
  readonly clock: Clock;
  readonly write: (text: string) => void;
  /** The least time between two lines about one matter; default 1,000. */
  readonly intervalMs?: number;
  /**
   * When a continuing matter is logged again, after that interval:
   * - `when-reported` (the default): with the next report, and the number of reports;
   * - `in-time`: by a timer, with the number of reports; a matter that was not reported meanwhile is
   *   forgotten. For matters whose end is not reported;
   * - `when-changed`: with the next report that has another text.
   */
  readonly again?: 'when-reported' | 'in-time' | 'when-changed';
}

/** Further keys share one entry, so that callers cannot flood the log with ever new keys. */
const maxKeys = 32;

class Matter {
  readonly key: string;
  firstMs: number | undefined;
  times = 0;
  loggedMs = Number.NEGATIVE_INFINITY;
  /** The text that was logged of the matter since it last ended. */
  loggedText: string | undefined;
  latest = '';
  unlogged = 0;
  cancel = () => {};

  constructor(key: string) {
    this.key = key;
  }
}

export function createRepeatedLog(deps: RepeatedLogDeps): RepeatedLog {
  const { clock, write, intervalMs = 1_000, again = 'when-reported' } = deps;
  const matters = new Map<string, Matter>();

  function flush(matter: Matter): void {
    const more = again === 'when-changed' ? 0 : matter.unlogged - 1;
    write(more > 0 ? `${matter.latest} (and ${more} more like it)` : matter.latest);
    matter.loggedText = matter.latest;
    matter.loggedMs = clock.monotonicMs();
    matter.unlogged = 0;
  }

  function watch(matter: Matter): void {
    matter.cancel();
    matter.cancel = clock.after(intervalMs, () => {
      if (matter.unlogged === 0) {
        matters.delete(matter.key);
      } else {
        flush(matter);
        watch(matter);
      }
    });
  }

  /** Removes matters that are over and may be logged again at once: they are as if they had never been reported. */
  function makeRoom(): void {
    const longAgoMs = clock.monotonicMs() - intervalMs;
    for (const [key, { firstMs, loggedMs }] of matters) {
      if (firstMs === undefined && loggedMs <= longAgoMs) matters.delete(key);
    }
  }

  function open(wantedKey: string): Matter {
    if (matters.size >= maxKeys) makeRoom();
    const key = matters.size < maxKeys ? wantedKey : 'others';
    const matter = matters.get(key) ?? new Matter(owned(key));
    matters.set(matter.key, matter);
    return matter;
  }

  return {
    report(text, key = '') {
      // Called for each decision while a store is unreachable.
      const matter = matters.get(key) ?? open(key);
      const now = clock.monotonicMs();
      matter.firstMs ??= now;
      matter.times++;
      if (matter.latest !== text) matter.latest = owned(text);
      matter.unlogged++;
      if (now - matter.loggedMs < intervalMs) return;
      if (again === 'when-changed' && matter.loggedText === text) return;
      flush(matter);
      if (again === 'in-time') watch(matter);
    },
    recover(key = '') {
      const matter = matters.get(key);
      if (matter === undefined) return undefined;
      const { firstMs = 0, times, loggedText } = matter;
      matter.firstMs = undefined;
      matter.times = 0;
      matter.loggedText = undefined;
      if (loggedText === undefined) return undefined;
      return { seconds: (clock.monotonicMs() - firstMs) / 1000, times };
    },
    flush() {
      for (const matter of matters.values()) {
        matter.cancel();
        if (matter.unlogged > 0) flush(matter);
      }
      matters.clear();
    },
  };
}
