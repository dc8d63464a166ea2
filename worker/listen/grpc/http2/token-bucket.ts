// Bounds how often something may happen: so many at once, so many per second.

export interface TokenBucket {
  /** False when there have been too many. `nowMs`: monotonic. */
  take(nowMs: number): boolean;
  /** Puts tokens back, as far as there is room. */
  give(count: number): void;
}

export function createTokenBucket(burst: number, perSecond: number): TokenBucket {
  let tokens = burst;
  let filledMs: number | undefined;
  return {
    take(nowMs) {
      const elapsedMs = nowMs - (filledMs ?? nowMs);
      filledMs = nowMs;
      tokens = Math.min(burst, tokens + (elapsedMs * perSecond) / 1000);
      if (tokens < 1) return false;
      tokens--;
      return true;
    },
    give(count) {
      tokens = Math.min(burst, tokens + count);
    },
  };
}
