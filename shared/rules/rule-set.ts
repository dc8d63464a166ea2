// All rules in force, made of the documents of one load. What takes several documents to see is
// checked here; what one document shows, in document.ts.

import { compareFiles } from './file-order.ts';
import { nearestWord } from './nearest-word.ts';
import type { Problem } from './problem.ts';
import { createProblemList, type ProblemList } from './problem-list.ts';
import type { DomainRules, RuleSet } from './rule.ts';
import { type RuleDescriptor, type RuleDocument, toCompositeKey } from './rule-document.ts';
import { createDomainTree, type RuleNode } from './rule-tree.ts';
import { findSharedCounters } from './shared-counters.ts';
import type { Position } from './source-text.ts';
import { toExcerpt } from './text-excerpt.ts';

export interface RuleSetOptions {
  /** MERGE_DOMAIN_CONFIG: several documents may add to one domain. */
  readonly mergeDomains: boolean;
  /** SANITIZE_DESCRIPTOR_METRIC_DOTS: dots of keys and values become `_` in metric keys. */
  readonly sanitizeMetricDots: boolean;
}

export type BuildResult =
  | { readonly ok: true; readonly ruleSet: RuleSet; readonly warnings: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** The order of `documents` does not matter: they are taken by file name. */
export function buildRuleSet(
  documents: readonly RuleDocument[],
  options: RuleSetOptions,
): BuildResult {
  const sorted = [...documents].sort((a, b) => compareFiles(a.file, b.file));
  const problems = createProblemList('(all documents)');
  const byDomain = Map.groupBy(sorted, (document) => document.domain);
  const domains = new Map<string, DomainRules>();
  const nodes: RuleNode[] = [];
  for (const [domain, group] of byDomain) {
    if (!options.mergeDomains) checkSingleDocument(group, problems);
    else checkMergedKeys(group, problems);
    checkReplacedNames(group, problems);
    if (problems.hasErrors) continue;
    const descriptors = group.flatMap((document) => document.descriptors);
    const tree = createDomainTree(domain, descriptors, options.sanitizeMetricDots);
    domains.set(domain, tree.rules);
    for (const node of tree.nodes) nodes.push(node);
  }
  if (problems.hasErrors) return { ok: false, problems: problems.toProblems() };
  findSharedCounters(sorted).forEach(problems.add);
  const ruleSet = createRuleSet(domains, byDomain, nodes);
  return { ok: true, ruleSet, warnings: problems.toProblems() };
}

function createRuleSet(
  domains: ReadonlyMap<string, DomainRules>,
  documents: ReadonlyMap<string, readonly RuleDocument[]>,
  nodes: readonly RuleNode[],
): RuleSet {
  const all = withChildren(nodes);
  const limits = all.filter(({ limit }) => limit !== undefined);
  const domainLines = [...documents].flatMap(([domain, group]) =>
    group.map((_, index) => `${index === 0 ? 'loading' : 'patching'} domain: ${domain}`),
  );
  return Object.freeze({
    domain: (name: string) => domains.get(name),
    domainCount: domains.size,
    limitCount: limits.length,
    describe: () => limits.map(describeNode),
    trail: () => [...domainLines, ...all.map(traceNode)],
  });
}

/** Parents before their children. */
function withChildren(nodes: readonly RuleNode[]): RuleNode[] {
  const all: RuleNode[] = [];
  const visit = (node: RuleNode) => {
    all.push(node);
    node.children.forEach(visit);
  };
  nodes.forEach(visit);
  return all;
}

function traceNode({ fullKey, limit }: RuleNode): string {
  const line = `loading descriptor: key=${fullKey}`;
  if (limit === undefined) return line;
  const amount = `requests_per_unit=${limit.requestsPerUnit}, unit=${limit.unit?.toUpperCase() ?? 'UNKNOWN'}`;
  const flags = `shadow_mode=${limit.shadowMode}, quota_mode=${limit.quotaMode}`;
  return `${line} ratelimit={${amount}, unlimited=${limit.unlimited}, ${flags}}`;
}

function describeNode({ fullKey, limit }: RuleNode): string {
  const unit = limit?.unit?.toUpperCase() ?? 'UNKNOWN';
  const flags = `shadow_mode: ${limit?.shadowMode}, quota_mode: ${limit?.quotaMode}`;
  return `${fullKey}: unit=${unit} requests_per_unit=${limit?.requestsPerUnit}, ${flags}`;
}

function checkSingleDocument(documents: readonly RuleDocument[], problems: ProblemList): void {
  const [first, ...others] = documents;
  for (const document of others) {
    const message = `duplicate domain '${toExcerpt(document.domain)}' in config file`;
    const hint = `the first one is at ${placeOf(first?.file ?? '', first?.position)}; to merge them, set MERGE_DOMAIN_CONFIG=true (a worker) or --merge-domains (a control plane, check)`;
    problems.add(createProblem('error', document, document.position, 'domain', message, hint));
  }
}

/** Within one document the same check has been made on every level. */
function checkMergedKeys(documents: readonly RuleDocument[], problems: ProblemList): void {
  const places = new Map<string, { document: RuleDocument; place: string }>();
  for (const document of documents) {
    document.descriptors.forEach((descriptor, index) => {
      const composite = toCompositeKey(descriptor.key, descriptor.value);
      const first = places.get(composite);
      if (first === undefined) {
        places.set(composite, { document, place: placeOf(document.file, descriptor.position) });
      } else if (first.document !== document) {
        const fullKey = toExcerpt(`${document.domain}.${composite}`, 200);
        const message = `duplicate descriptor composite key '${fullKey}'`;
        const path = `descriptors[${index}]`;
        const hint = `the first one is at ${first.place}`;
        problems.add(createProblem('error', document, descriptor.position, path, message, hint));
      }
    });
  }
}

/** Finding the nearest of many names takes time, and a few hints show the pattern. */
const maxNameHints = 20;

/** A rule may replace a name that no rule has, but then it replaces nothing. */
function checkReplacedNames(documents: readonly RuleDocument[], problems: ProblemList): void {
  const names = new Set<string>();
  for (const document of documents) {
    forEachDescriptor(document.descriptors, 'descriptors', ({ rateLimit }) => {
      if (rateLimit?.name) names.add(rateLimit.name);
    });
  }
  let hints = 0;
  for (const document of documents) {
    forEachDescriptor(document.descriptors, 'descriptors', ({ rateLimit }, path) => {
      rateLimit?.replaces.forEach(({ name, position }, index) => {
        if (names.has(name)) return;
        const shown = `'${toExcerpt(name)}'`;
        const message = `replaces names ${shown}, which no rule of domain '${toExcerpt(document.domain)}' has`;
        const guess = ++hints <= maxNameHints ? nearestWord(name, [...names]) : undefined;
        const hint = guess && `did you mean '${toExcerpt(guess)}'?`;
        const itemPath = `${path}.rate_limit.replaces[${index}].name`;
        problems.add(createProblem('warning', document, position, itemPath, message, hint));
      });
    });
  }
}

function forEachDescriptor(
  descriptors: readonly RuleDescriptor[],
  path: string,
  visit: (descriptor: RuleDescriptor, path: string) => void,
): void {
  descriptors.forEach((descriptor, index) => {
    const itemPath = `${path}[${index}]`;
    visit(descriptor, itemPath);
    forEachDescriptor(descriptor.descriptors, `${itemPath}.descriptors`, visit);
  });
}

function placeOf(file: string, position: Position | undefined): string {
  return position ? `${file}:${position.line}:${position.column}` : file;
}

function createProblem(
  severity: Problem['severity'],
  document: RuleDocument,
  position: Position | undefined,
  path: string,
  message: string,
  hint: string | undefined,
): Problem {
  return {
    severity,
    file: document.file,
    line: position?.line,
    column: position?.column,
    path,
    message,
    hint,
    sourceLine: position?.sourceLine,
  };
}
