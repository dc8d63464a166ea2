// The buckets in which the durations of decisions are counted, by workers and by who reads what they report.

/** Upper bounds in seconds: most decisions take a tenth of a millisecond, or one way to the store. A bucket
 * without a bound follows. */
export const decisionDurationBounds: readonly number[] = [
  ...[0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005],
  ...[0.01, 0.025, 0.05, 0.1, 0.25, 1],
];
