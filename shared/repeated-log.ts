// Keeps what happens again and again from flooding the log: it is said when it begins, then at most once in
// a while with the number of times, and its end once. Level and words are the caller's.
import type { Clock } from './clock.ts';

export interface RepeatedLog {
  /** `text` is one sentence without a final full stop. Reports under one key are about one matter: when a
   * line stands for several it has the text of the latest. */
  report(text: string, key?: string): void;
  /**
   * The matter is over. Returns how long it lasted and how often it was reported, to be said, unless
   * nothing was said of it since it was last over.
   */
  recover(key?: string): { readonly seconds: number; readonly times: number } | undefined;
  /** Says what was only counted, and forgets everything. */
  flush(): void;
}

export interface RepeatedLogDeps {
  readonly clock: Clock;
  readonly write: (text: string) => void;
  /** The least time between two lines about one matter; default 1,000. */
  readonly intervalMs?: number;
  /**
   * When a matter that goes on is said again, after that time:
   * - `when-reported` (the default): with the next report, and the number of reports;
   * - `in-time`: without waiting for a report, and the number; what was not reported meanwhile is forgotten.
   *   For matters whose end nobody reports;
   * - `when-changed`: with the next report that has another text.
   */
  readonly again?: 'when-reported' | 'in-time' | 'when-changed';
}

/** Further keys share one, so that callers who vary what they do flood nothing either. */
const maxKeys = 32;

class Matter {
  readonly key: string;
  firstMs: number | undefined;
  times = 0;
  saidMs = Number.NEGATIVE_INFINITY;
  /** What was said of it since it was last over. */
  saidText: string | undefined;
  latest = '';
  unsaid = 0;
  cancel = () => {};

  constructor(key: string) {
    this.key = key;
  }
}

export function createRepeatedLog(deps: RepeatedLogDeps): RepeatedLog {
  const { clock, write, intervalMs = 1_000, again = 'when-reported' } = deps;
  const matters = new Map<string, Matter>();

  function say(matter: Matter): void {
    const more = again === 'when-changed' ? 0 : matter.unsaid - 1;
    write(
      more > 0 ? `${matter.latest} (and ${more} more since this was last said)` : matter.latest,
    );
    matter.saidText = matter.latest;
    matter.saidMs = clock.monotonicMs();
    matter.unsaid = 0;
  }

  function watch(matter: Matter): void {
    matter.cancel();
    matter.cancel = clock.after(intervalMs, () => {
      if (matter.unsaid === 0) {
        matters.delete(matter.key);
      } else {
        say(matter);
        watch(matter);
      }
    });
  }

  function open(wantedKey: string): Matter {
    const key = matters.size < maxKeys ? wantedKey : 'others';
    const matter = matters.get(key) ?? new Matter(key);
    matters.set(key, matter);
    return matter;
  }

  return {
    report(text, key = '') {
      // Called for each decision while a store is away.
      const matter = matters.get(key) ?? open(key);
      const now = clock.monotonicMs();
      matter.firstMs ??= now;
      matter.times++;
      matter.latest = text;
      matter.unsaid++;
      if (now - matter.saidMs < intervalMs) return;
      if (again === 'when-changed' && matter.saidText === text) return;
      say(matter);
      if (again === 'in-time') watch(matter);
    },
    recover(key = '') {
      const matter = matters.get(key);
      if (matter === undefined) return undefined;
      const { firstMs = 0, times, saidText } = matter;
      matter.firstMs = undefined;
      matter.times = 0;
      matter.saidText = undefined;
      if (saidText === undefined) return undefined;
      return { seconds: (clock.monotonicMs() - firstMs) / 1000, times };
    },
    flush() {
      for (const matter of matters.values()) {
        matter.cancel();
        if (matter.unsaid > 0) say(matter);
      }
      matters.clear();
    },
  };
}
