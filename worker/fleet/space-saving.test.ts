import test from 'ava';
import { createRandom } from '../../test/support/random.ts';
import { SpaceSaving } from './space-saving.ts';

/** Ranks from 1, drawn with a probability proportional to 1 / rank^exponent. */
function createZipf(seed: number, ranks: number, exponent: number): () => number {
  const random = createRandom(seed);
  const sums = new Float64Array(ranks);
  let sum = 0;
  for (let rank = 1; rank <= ranks; rank++) {
    sum += rank ** -exponent;
    sums[rank - 1] = sum;
  }
  return () => {
    const drawn = (random.below(2 ** 32) / 2 ** 32) * sum;
    let [low, high] = [0, ranks - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((sums[middle] ?? 0) < drawn) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}

function countAll(size: number, draws: number, draw: () => number) {
  const sketch = new SpaceSaving<number>(size);
  const truth = new Map<number, number>();
  for (let index = 0; index < draws; index++) {
    const rank = draw();
    truth.set(rank, (truth.get(rank) ?? 0) + 1);
    if (!sketch.count(`${rank}`)) sketch.insert(`${rank}`, rank);
  }
  return { sketch, truth };
}

for (const seed of [1, 2, 3]) {
  test(`the 20 most frequent of a million values at Zipf 1.1 are found, with counts within their bounds (seed ${seed})`, (t) => {
    const { sketch, truth } = countAll(1_000, 300_000, createZipf(seed, 1_000_000, 1.1));
    const largest = [...truth].sort(([, a], [, b]) => b - a).slice(0, 20);
    const found = new Set(sketch.top(20).map(({ item }) => item));
    const hits = largest.filter(([rank]) => found.has(rank)).length;
    t.true(hits >= 19, `${hits} of 20`);
    const listed = sketch.top(1_000);
    t.is(listed.length, 1_000);
    for (const { item, count, error } of listed) {
      const real = truth.get(item) ?? 0;
      if (count < real || count - error > real)
        t.fail(`${item}: ${real} is not in ${count} - ${error}`);
    }
    const keys = new Set(listed.map(({ item }) => item));
    const most = Math.max(...[...truth].map(([rank, real]) => (keys.has(rank) ? 0 : real)));
    t.true(most <= sketch.least, `${most} of one that is not listed, above ${sketch.least}`);
  });
}

test('while there is room, every count is exact and no value is missing', (t) => {
  const { sketch, truth } = countAll(101, 5_000, createZipf(7, 100, 1));
  t.is(sketch.least, 0);
  for (const { item, count, error } of sketch.top(100))
    t.deepEqual([count, error], [truth.get(item), 0]);
  sketch.clear();
  t.deepEqual(sketch.top(100), []);
});
