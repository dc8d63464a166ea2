// The order in which rules files take effect. It matters where several of them add to one domain.
import { runAtOnce } from '../in-slices.ts';
import { sortInSteps } from '../sorted-in-steps.ts';
import type { RuleDocument } from './rule-document.ts';

/** Negative when `one` precedes `other`: by path, as if dots separated its folders (behaviour: file-order). */
export function compareFiles(one: string, other: string): number {
  const [key, otherKey] = [one.replaceAll('/', '.'), other.replaceAll('/', '.')];
  if (key === otherKey) return one < other ? -1 : one > other ? 1 : 0;
  return key < otherKey ? -1 : 1;
}

/**
 * The documents by the name of their domain, in the order in which they take effect. Files of different domains are not
 * compared.
 */
export type DocumentsByDomain = ReadonlyMap<string, readonly RuleDocument[]>;

/** How many documents are grouped between two yields: this takes well below a millisecond. */
const documentsAtOnce = 1_000;

/** Groups documents by domain. Yields so that the thread can serve other callers. */
export function* groupInSteps(
  documents: readonly RuleDocument[],
): Generator<void, DocumentsByDomain> {
  const groups = new Map<string, RuleDocument[]>();
  const large = new Set<string>();
  for (const [index, document] of documents.entries()) {
    if (index % documentsAtOnce === documentsAtOnce - 1) yield;
    const { domain } = document;
    const group = groups.get(domain);
    if (group === undefined) groups.set(domain, [document]);
    else {
      group.push(document);
      large.add(domain);
    }
  }
  for (const domain of large) {
    groups.set(
      domain,
      yield* sortInSteps(groups.get(domain) ?? [], (a, b) => compareFiles(a.file, b.file)),
    );
  }
  return groups;
}

/** As `groupInSteps`, without pauses. */
export function groupByDomain(documents: readonly RuleDocument[]): DocumentsByDomain {
  return runAtOnce(groupInSteps(documents));
}
