// Keeps something that fails again and again from flooding the log: the first failure is said at
// once, later ones at most once per interval, with a count. The caller chooses level and words.
import type { Clock } from './clock.ts';

export interface FailureLog {
  /** `text` is one sentence without a final full stop. */
  failed(text: string): void;
  /**
   * The trouble is over. Returns how long it lasted and how many failures there were, to be said,
   * unless no failure was said since the last recovery.
   */
  recover(): { readonly seconds: number; readonly failures: number } | undefined;
}

export interface FailureLogDeps {
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly write: (text: string) => void;
}

export function createFailureLog({ clock, intervalMs, write }: FailureLogDeps): FailureLog {
  let firstMs: number | undefined;
  let failures = 0;
  let said = false;
  let lastSaidMs = Number.NEGATIVE_INFINITY;
  let unsaid = 0;
  return {
    failed(text) {
      const now = clock.monotonicMs();
      firstMs ??= now;
      failures++;
      if (now - lastSaidMs < intervalMs) {
        unsaid++;
        return;
      }
      write(unsaid === 0 ? text : `${text} (and ${unsaid} more since this was last said)`);
      said = true;
      lastSaidMs = now;
      unsaid = 0;
    },
    recover() {
      const summary = { seconds: (clock.monotonicMs() - (firstMs ?? 0)) / 1000, failures };
      const wasSaid = said;
      firstMs = undefined;
      failures = 0;
      said = false;
      return wasSaid ? summary : undefined;
    },
  };
}
