// The buckets in which workers count the durations of decisions and of calls of the store; readers of their
// reports use the same.

/** Upper bounds in seconds: most decisions take a tenth of a millisecond, or one way to the store. A bucket
 * without a bound follows. */
export const decisionDurationBounds: readonly number[] = [
  ...[0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005],
  ...[0.01, 0.025, 0.05, 0.1, 0.25, 1],
];

/**
 * The bound in milliseconds below which 99 of 100 durations lie. `all` has the counts of each bucket (not cumulative),
 * which are added up. Undefined without durations, infinite beyond the last bound.
 */
export function findP99Ms(all: readonly (readonly number[])[]): number | undefined {
  const sums = Array.from({ length: decisionDurationBounds.length + 1 }, (_, index) =>
    all.reduce((sum, durations) => sum + (durations[index] ?? 0), 0),
  );
  const total = sums.reduce((sum, count) => sum + count, 0);
  if (total === 0) return undefined;
  let passed = 0;
  const index = sums.findIndex((count) => {
    passed += count;
    return passed >= 0.99 * total;
  });
  return (decisionDurationBounds[index] ?? Number.POSITIVE_INFINITY) * 1000;
}
