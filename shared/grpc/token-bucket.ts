// A token bucket: a burst, and a rate per second after it.

export interface TokenBucket {
  /** Takes tokens, all or none; false when there are too few. `nowMs` is monotonic. */
  spend(tokens: number, nowMs: number): boolean;
  /** Puts tokens back, as far as there is room. */
  give(tokens: number): void;
}

export interface TokenBucketOptions {
  readonly capacity: number;
  readonly perSecond: number;
}

export function createTokenBucket({ capacity, perSecond }: TokenBucketOptions): TokenBucket {
  let available = capacity;
  let filledMs: number | undefined;
  return {
    spend(tokens, nowMs) {
      const passedMs = nowMs - (filledMs ?? nowMs);
      filledMs = nowMs;
      available = Math.min(capacity, available + (passedMs / 1000) * perSecond);
      if (available < tokens) return false;
      available -= tokens;
      return true;
    },
    give(tokens) {
      available = Math.min(capacity, available + tokens);
    },
  };
}
