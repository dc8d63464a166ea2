// Counts the observations of a timer by value, in bounded memory. Most values are a few whole milliseconds: they are
// counted rather than listed, so a missing receiver costs no memory.

export interface ObservationBuffer {
  observe(ms: number, times?: number): void;
  /** Each value and how often it was observed. */
  entries(): Iterable<readonly [ms: number, count: number]>;
  /** How many observations were dropped because of too many distinct values. */
  readonly dropped: number;
  clear(): void;
}

/** The most distinct values that are stored, beside the small whole ones. */
const maxDistinct = 4096;
const smallValues = 1024;

export function createObservationBuffer(): ObservationBuffer {
  const small = new Uint32Array(smallValues);
  const others = new Map<number, number>();
  let dropped = 0;
  return {
    observe(ms, times = 1) {
      const count = small[ms];
      if (count !== undefined) small[ms] = count + times;
      else if (others.size < maxDistinct || others.has(ms)) {
        others.set(ms, (others.get(ms) ?? 0) + times);
      } else dropped += times;
    },
    *entries() {
      for (const [ms, count] of small.entries()) {
        if (count > 0) yield [ms, count] as const;
      }
      yield* others;
    },
    get dropped() {
      return dropped;
    },
    clear() {
      small.fill(0);
      others.clear();
      dropped = 0;
    },
  };
}
