// Combines values of several workers or control planes: those with the same key are joined, and their fields summed.
// Pure.

type Values<Value> = readonly [Value, ...Value[]];

/** One value for each key, in the order of the keys' first appearance. */
export function joinBy<Value, Key, Joined>(
  all: readonly Value[],
  toKey: (value: Value) => Key,
  join: (same: Values<Value>) => Joined,
): Joined[] {
  return [...Map.groupBy(all, toKey).values()].map((same) => join(same as [Value, ...Value[]]));
}

/** The sum of each field. A field that is missing, as in an answer of an older control plane, counts as zero. */
export function sumFields<Field extends string>(
  all: readonly { readonly [Name in Field]?: number | undefined }[],
  fields: readonly Field[],
): Record<Field, number> {
  const sums = fields.map((field) => [
    field,
    all.reduce((sum, each) => sum + (each[field] ?? 0), 0),
  ]);
  return Object.fromEntries(sums) as Record<Field, number>;
}

/** Each field rounded to a tenth; below one, to a hundredth. */
export function roundFields<Field extends string>(
  rates: Readonly<Record<Field, number>>,
): Record<Field, number> {
  const rounded = Object.entries<number>(rates).map(([field, rate]) => [field, round(rate)]);
  return Object.fromEntries(rounded) as Record<Field, number>;
}

/** Rounds to a tenth; below one, to a hundredth. */
export function round(rate: number): number {
  const parts = rate < 1 ? 100 : 10;
  return Math.round(rate * parts) / parts;
}
