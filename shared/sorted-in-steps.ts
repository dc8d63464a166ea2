// Sorts in steps, for runInSlices.

/** Items sorted or merged between two yields: this takes well below a millisecond. */
const itemsAtOnce = 500;

/** As `toSorted`: a copy, in which equal items keep their order. Yields so that the thread can serve other callers. */
export function* sortInSteps<Item>(
  items: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Generator<void, Item[]> {
  let runs: Item[][] = [];
  for (let at = 0; at < items.length; at += itemsAtOnce) {
    runs.push(items.slice(at, at + itemsAtOnce).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: Item[][] = [];
    for (let at = 0; at < runs.length; at += 2) {
      const [one = [], other = []] = [runs[at], runs[at + 1]];
      merged.push(yield* merge(one, other, compare));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* merge<Item>(
  one: readonly Item[],
  other: readonly Item[],
  compare: (one: Item, other: Item) => number,
): Generator<void, Item[]> {
  const merged: Item[] = [];
  const length = one.length + other.length;
  let ofOther = 0;
  for (let ofOne = 0; merged.length < length; ) {
    const isOne =
      ofOther === other.length ||
      (ofOne < one.length && compare(one[ofOne] as Item, other[ofOther] as Item) <= 0);
    merged.push((isOne ? one[ofOne++] : other[ofOther++]) as Item);
    if (merged.length % itemsAtOnce === 0) yield;
  }
  return merged;
}
