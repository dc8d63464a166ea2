// The shape of a limit: all of it but its name and position, which is its numbers, its human-readable description, and
// the tag that distinguishes its counters from those of plain fixed windows (behaviour: limit-algorithms).
import type { Unit } from './unit.ts';

export const algorithms = ['fixed_window', 'sliding_window', 'token_bucket'] as const;
export type Algorithm = (typeof algorithms)[number];

/** Algorithms other than fixed windows. */
export const limiterAlgorithms = ['sliding_window', 'token_bucket'] as const;
export type LimiterAlgorithm = (typeof limiterAlgorithms)[number];

/** The numbers of a limit with such an algorithm. */
export interface Limiter {
  readonly algorithm: LimiterAlgorithm;
  /** Hits in a window; 0 admits none. */
  readonly limit: number;
  /** The most hits that can be admitted at once: `burst` of a bucket, else `limit`. */
  readonly capacity: number;
  /** Whether hits over the limit are counted. */
  readonly countsOver: boolean;
}

/** How many hits a worker takes from a counter at once, and for how long (behaviour: leases). */
export interface Lease {
  /** The share of the remaining hits, above 0 and at most 0.5. */
  readonly share: number;
  readonly forMs: number;
}

/** The shape of a limit that is not unlimited. */
export interface LimitShape {
  /** 0 to 4294967295; 0 rejects every request. */
  readonly requestsPerUnit: number;
  /** Undefined only when unlimited. */
  readonly unit: Unit | undefined;
  /** The length of a window in units. */
  readonly unitMultiplier: number;
  readonly algorithm: Algorithm;
  /** The burst of a token bucket; undefined if none is configured. */
  readonly burst: number | undefined;
  /** Whether hits over the limit are counted; fixed windows always count them. */
  readonly countOverLimit: boolean;
  /** Undefined if each hit is counted in the store. */
  readonly lease: Lease | undefined;
}

/** The shape of a limit with defaults for all newer fields. */
export const plainShape = {
  unitMultiplier: 1,
  algorithm: 'fixed_window',
  burst: undefined,
  countOverLimit: false,
  lease: undefined,
} as const;

/** Months of 30 days, years of 365. */
const unitSeconds: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  week: 7 * 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
};

export function windowSecondsOf({
  unit,
  unitMultiplier,
}: Pick<LimitShape, 'unit' | 'unitMultiplier'>): number {
  return unit === undefined ? 1 : unitSeconds[unit] * unitMultiplier;
}

/** Undefined for a fixed window. */
export function toLimiter(shape: LimitShape): Limiter | undefined {
  const { algorithm, requestsPerUnit: limit, burst, countOverLimit: countsOver } = shape;
  if (algorithm === 'fixed_window') return undefined;
  const capacity = algorithm === 'token_bucket' ? (burst ?? limit) : limit;
  return { algorithm, limit, capacity, countsOver };
}

/** `minute`, or `5_minute`. */
export function toWindowName({
  unit,
  unitMultiplier,
}: Pick<LimitShape, 'unit' | 'unitMultiplier'>): string {
  return unitMultiplier === 1 ? `${unit}` : `${unitMultiplier}_${unit}`;
}

export type ShapeValue = string | number | boolean | { readonly [name: string]: string };

function toPercent({ share }: Lease): number {
  return Number((share * 100).toPrecision(12));
}

/** The fields that differ from a plain limit, by their names in YAML. */
export function listShape(shape: LimitShape): [name: string, value: ShapeValue][] {
  const { unitMultiplier, algorithm, burst, countOverLimit, lease } = shape;
  const all: [string, ShapeValue | undefined, unknown][] = [
    ['unit_multiplier', unitMultiplier, 1],
    ['algorithm', algorithm, 'fixed_window'],
    ['burst', burst, undefined],
    ['count_over_limit', countOverLimit, false],
    ['lease', lease && { share: `${toPercent(lease)}%`, for: `${lease.forMs}ms` }, undefined],
  ];
  return all.flatMap(([name, value, plain]) =>
    value === undefined || value === plain ? [] : [[name, value]],
  );
}

/** `minute`, `5 minutes`. */
export function describeTime({
  unit,
  unitMultiplier,
}: Pick<LimitShape, 'unit' | 'unitMultiplier'>): string {
  return unitMultiplier === 1 ? `${unit}` : `${unitMultiplier} ${unit}s`;
}

/** `40,000`. */
export function toNumberText(value: number): string {
  return value.toLocaleString('en');
}

/**
 * A limit as operators write it, in messages, commands and the console: `100 per 5 minutes`, `2,000,000 per day (sliding
 * window)`, `40,000 per minute (token bucket, burst 40,000)`.
 */
export function describeShape(shape: LimitShape): string {
  const { requestsPerUnit, algorithm, burst, countOverLimit } = shape;
  const details = [
    ...(algorithm === 'fixed_window' ? [] : [algorithm.replace('_', ' ')]),
    ...(algorithm === 'token_bucket' ? [`burst ${toNumberText(burst ?? requestsPerUnit)}`] : []),
    ...(algorithm !== 'fixed_window' && countOverLimit ? ['counts hits over the limit'] : []),
  ];
  const rate = `${toNumberText(requestsPerUnit)} per ${describeTime(shape)}`;
  return details.length === 0 ? rate : `${rate} (${details.join(', ')})`;
}
