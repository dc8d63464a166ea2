// The order in which rules files take effect. It matters where several of them add to one domain.
import type { RuleDocument } from './rule-document.ts';

/** Negative when `one` comes first: by path, as if dots separated its folders (behaviour: file-order). */
export function compareFiles(one: string, other: string): number {
  const [key, otherKey] = [one.replaceAll('/', '.'), other.replaceAll('/', '.')];
  if (key === otherKey) return one < other ? -1 : one > other ? 1 : 0;
  return key < otherKey ? -1 : 1;
}

/** The documents of each domain, by its name, in the order in which they take effect. Files of different domains are
 * not compared: a worker groups thousands of files between two decisions. */
export function groupByDomain(documents: readonly RuleDocument[]): Map<string, RuleDocument[]> {
  const byDomain = Map.groupBy(documents, ({ domain }) => domain);
  for (const group of byDomain.values()) {
    if (group.length > 1) group.sort((a, b) => compareFiles(a.file, b.file));
  }
  return byDomain;
}
