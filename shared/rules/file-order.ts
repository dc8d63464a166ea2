// The order in which rules files take effect. It matters where several of them add to one domain.

/** Negative when `one` comes first: by path, as if dots separated its folders (behaviour: file-order). */
export function compareFiles(one: string, other: string): number {
  const [key, otherKey] = [one.replaceAll('/', '.'), other.replaceAll('/', '.')];
  if (key === otherKey) return one < other ? -1 : one > other ? 1 : 0;
  return key < otherKey ? -1 : 1;
}
