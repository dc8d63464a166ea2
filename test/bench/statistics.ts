// Medians over rounds, and ratios to the yardstick within the same round, which a slow change of the machine affects
// less than the ratio of two medians.

/** NaN when the list is empty or contains NaN. */
export function median(values: readonly number[]): number {
  if (values.length === 0 || values.some(Number.isNaN)) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const upper = sorted[middle] as number;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] as number) + upper) / 2;
}

/** Half the range, relative to the median. */
export function spread(values: readonly number[]): number {
  return (Math.max(...values) - Math.min(...values)) / 2 / median(values);
}

/** The median of the ratios of pairs; values without a partner are omitted. */
export function medianRatio(
  values: ReadonlyMap<number, number>,
  bases: ReadonlyMap<number, number>,
): number {
  const ratios: number[] = [];
  for (const [round, value] of values) {
    const base = bases.get(round);
    if (base !== undefined && base > 0) ratios.push(value / base);
  }
  return median(ratios);
}
