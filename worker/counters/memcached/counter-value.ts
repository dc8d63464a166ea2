// A counter's value in memcached, and how hits change it; exact above 2^53.

/** A bigint only above 2^53; undefined for a missing counter. */
export type CounterValue = number | bigint | undefined;

/** Counters stay below this, as in the other stores. */
const counterBound = 2n ** 63n;

/** Undefined for other values. memcached pads a decremented counter with blanks. */
export function parseCounterValue(text: string): CounterValue {
  if (!/^\d{1,20} *$/.test(text)) return undefined;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text.trimEnd());
}

/** The counter after `hits` more; undefined when it would exceed the bound. */
export function addHits(value: CounterValue, hits: number | bigint): number | bigint | undefined {
  const before = value ?? 0;
  if (typeof before === 'number' && typeof hits === 'number') {
    const sum = before + hits;
    if (Number.isSafeInteger(sum)) return sum;
  }
  const sum = BigInt(before) + BigInt(hits);
  return sum >= counterBound ? undefined : toExact(sum);
}

/** The counter after a refund of `hits`: it stops at 0, and a missing one stays missing. */
export function refundHits(value: CounterValue, hits: number | bigint): CounterValue {
  if (value === undefined) return undefined;
  if (value <= hits) return 0;
  if (typeof value === 'number' && typeof hits === 'number') return value - hits;
  return toExact(BigInt(value) - BigInt(hits));
}

function toExact(value: bigint): number | bigint {
  return value <= Number.MAX_SAFE_INTEGER ? Number(value) : value;
}
