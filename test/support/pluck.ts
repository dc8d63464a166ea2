// One field of each of several values, for an assertion that is a line.

export function pluck<Item, Key extends keyof Item>(
  items: readonly Item[] = [],
  key: Key,
): Item[Key][] {
  return items.map((item) => item[key]);
}
