// The rules of documents with their positions, in the order in which they take effect, for advice, explanations and
// comparisons. rule-tree.ts matches requests.
import { runAtOnce } from '../../in-slices.ts';
import { groupByDomain } from '../file-order.ts';
import { type Problem, problemOf } from '../problem/problem.ts';
import { type ProblemRule, severityOf } from '../problem/problem-rule.ts';
import { type RuleDescriptor, type RuleDocument, toCompositeKey } from '../rule-document.ts';

/** Rules placed between two steps: this takes well below a millisecond. */
const rulesAtOnce = 100;

export interface RulePosition {
  readonly document: RuleDocument;
  readonly descriptor: RuleDescriptor;
  /** A path such as `descriptors[0].descriptors[2]`. */
  readonly path: string;
}

export interface LocatedRule extends RulePosition {
  /** The name on its level: the key, with `_` and the value if there is one. */
  readonly composite: string;
  readonly isWildcard: boolean;
  readonly children: readonly LocatedRule[];
}

/** The top level of each domain, by the domain's name. Several documents of a domain add up. */
export function locateRules(
  documents: readonly RuleDocument[],
): ReadonlyMap<string, readonly LocatedRule[]> {
  return new Map(
    [...groupByDomain(documents)].map(([domain, group]) => [
      domain,
      runAtOnce(locateDocuments(group)),
    ]),
  );
}

/** The top level of the documents of one domain, in steps. */
export function* locateDocuments(
  documents: readonly RuleDocument[],
): Generator<void, readonly LocatedRule[]> {
  const located: LocatedRule[] = [];
  for (const document of documents) {
    for (const rule of yield* locateAll(document, document.descriptors, 'descriptors')) {
      located.push(rule);
    }
  }
  return located;
}

function* locateAll(
  document: RuleDocument,
  descriptors: readonly RuleDescriptor[],
  listPath: string,
): Generator<void, LocatedRule[]> {
  const located: LocatedRule[] = [];
  for (const [index, descriptor] of descriptors.entries()) {
    const path = `${listPath}[${index}]`;
    const composite = toCompositeKey(descriptor.key, descriptor.value);
    located.push({
      document,
      descriptor,
      path,
      composite,
      isWildcard: composite.includes('*'),
      children:
        descriptor.descriptors.length === 0
          ? []
          : yield* locateAll(document, descriptor.descriptors, `${path}.descriptors`),
    });
    if (index % rulesAtOnce === rulesAtOnce - 1) yield;
  }
  return located;
}

/** `file:line:column`, or the file and the path where the source has no lines. */
export function toPositionText({ document, descriptor, path }: RulePosition): string {
  const { position } = descriptor;
  const point = position ? `${position.line}:${position.column}` : path;
  return `${document.file}:${point}`;
}

/** A warning or note about the rule, or about its field `field`. */
export function createRuleAdvice(
  rule: ProblemRule,
  { document, descriptor, path }: RulePosition,
  field: string | undefined,
  message: string,
  hint: string,
): Problem {
  return {
    ...problemOf(severityOf(rule), rule, document.file, message, hint),
    path: field === undefined ? path : `${path}.${field}`,
    ...descriptor.position,
  };
}
