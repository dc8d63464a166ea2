// Latencies in microseconds: exact up to 512, above that in steps of less than 0.4 %.

const stepBits = 8;
const buckets = 32 << stepBits;

export type Histogram = ReturnType<typeof createHistogram>;

export function createHistogram() {
  const counts = new Float64Array(buckets);
  let count = 0;
  let max = 0;
  return {
    add(us: number) {
      const full = us > 0 ? Math.min(Math.floor(us), 0x7fff_ffff) : 0;
      const bucket = bucketOf(full);
      counts[bucket] = (counts[bucket] as number) + 1;
      count++;
      if (full > max) max = full;
    },
    /** The highest possible value at a fraction of all; NaN when there are none. */
    quantile(fraction: number) {
      if (count === 0) return Number.NaN;
      let rank = Math.floor(fraction * count);
      for (const [bucket, inBucket] of counts.entries()) {
        if (inBucket > rank) return Math.min(topOf(bucket), max);
        rank -= inBucket;
      }
      return max;
    },
    get count() {
      return count;
    },
  };
}

function bucketOf(us: number): number {
  const shift = Math.max(31 - Math.clz32(us) - stepBits, 0);
  return (shift << stepBits) + (us >>> shift);
}

function topOf(bucket: number): number {
  const shift = Math.max((bucket >>> stepBits) - 1, 0);
  return (bucket - (shift << stepBits) + 1) * 2 ** shift - 1;
}
