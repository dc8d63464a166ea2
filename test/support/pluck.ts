// Takes one field of each of several values, for one-line assertions.

export function pluck<Item, Key extends keyof Item>(
  items: readonly Item[] = [],
  key: Key,
): Item[Key][] {
  return items.map((item) => item[key]);
}
