// Builds the rules in force from the documents of one load, and checks across documents. document.ts checks each
// document by itself.

import { runAtOnce } from '../in-slices.ts';
import { createBoundedNearestWord, didYouMean } from '../nearest-word.ts';
import { toExcerpt } from '../text-excerpt.ts';
import { describeJoined, type JoinedItem, type JoinedLimit } from './document/joined-items.ts';
import { compareFiles, groupInSteps } from './file-order.ts';
import { listShape } from './limit-shape.ts';
import { createDomainTree, type DomainWithNodes, type RuleNode } from './lookup/rule-tree.ts';
import { findStoppingRules } from './lookup/stopping-rules.ts';
import { type TextMap, withRoom } from './lookup/text-map.ts';
import { isError, type Problem, problemOf } from './problem/problem.ts';
import type { Position } from './problem/reporter.ts';
import { Reporter } from './problem/reporter.ts';
import type { DomainRules, Limit, RuleSet } from './rule.ts';
import {
  type RateLimitBlock,
  type RuleDescriptor,
  type RuleDocument,
  toCompositeKey,
  walkDescriptors,
} from './rule-document.ts';
import {
  countEnded,
  findDocumentsAt,
  isTooFar,
  mostDaysAhead,
  rememberEnds,
  toTimeText,
} from './rule-end.ts';
import { limitModes } from './rule-keys.ts';
import { findSharedCounters } from './shared-counters.ts';

export interface RuleSetOptions {
  /** MERGE_DOMAIN_CONFIG: several documents may add to one domain. */
  readonly mergeDomains: boolean;
  /** SANITIZE_DESCRIPTOR_METRIC_DOTS: dots of keys and values become `_` in metric keys. */
  readonly sanitizeMetricDots: boolean;
  /** The store can only count fixed windows: limits with other algorithms are refused. */
  readonly fixedWindowsOnly?: boolean;
  /** Warns of rules that keep others from being counted (stopping-rules.ts). */
  readonly warnsOfStops?: boolean;
}

export type BuildResult =
  | { readonly ok: true; readonly ruleSet: RuleSet; readonly warnings: readonly Problem[] }
  | Refused;

interface Refused {
  readonly ok: false;
  readonly problems: readonly Problem[];
}

/**
 * Builds rule sets one after the other. Reuses the rules of a domain while all of its documents are the same objects;
 * in a domain that changed, reuses those rules of the previous set whose descriptors are the same objects.
 */
export interface RuleSetBuilder {
  /**
   * The order of `documents` does not matter: they are sorted by file name. Rules that have ended at `nowMs`, wall
   * time, are checked like all others, but are not in the set. Yields so that the thread can serve other callers.
   */
  build(documents: readonly RuleDocument[], nowMs: number): Generator<void, BuildResult>;
}

export function buildRuleSet(
  documents: readonly RuleDocument[],
  options: RuleSetOptions,
  nowMs = Date.now(),
): BuildResult {
  return runAtOnce(createRuleSetBuilder(options).build(documents, nowMs));
}

export function createRuleSetBuilder(options: RuleSetOptions): RuleSetBuilder {
  const { sanitizeMetricDots } = options;
  const builder = new DomainsBuilder(options, (domain, current, before?: DomainWithNodes) => {
    const lists = current.map(({ descriptors }) => descriptors);
    return createDomainTree(domain, lists, sanitizeMetricDots, before?.nodes);
  });
  return {
    *build(documents, nowMs) {
      const built = yield* builder.build(documents, nowMs);
      if (!built.ok) return built;
      const ruleSet = yield* createRuleSet(built.domains);
      return { ok: true, ruleSet, warnings: built.warnings };
    },
  };
}

/** The rules of one domain with their warnings. */
interface CheckedDomain<Made> {
  readonly documents: readonly RuleDocument[];
  readonly made: Made;
  /** The number of its rules that had ended. */
  readonly endedCount: number;
  /** Only warnings. */
  readonly problems: readonly Problem[];
}

type CheckedDomains<Made> = ReadonlyMap<string, CheckedDomain<Made>>;

/** `current` has no rules that have ended. `before` is the value last made for the domain. */
type MakeOfDomain<Made> = (
  domain: string,
  current: readonly RuleDocument[],
  before: Made | undefined,
) => Generator<void, Made>;

/** Checks documents across files, and makes a value for each domain whose rules are valid. */
export class DomainsBuilder<Made> {
  readonly #options: RuleSetOptions;
  readonly #make: MakeOfDomain<Made>;
  /** The checked domains, by their first document. */
  readonly #known = new WeakMap<RuleDocument, CheckedDomain<Made>>();
  /** The value last made for each existing domain. */
  #last: ReadonlyMap<string, Made> = new Map();

  constructor(options: RuleSetOptions, make: MakeOfDomain<Made>) {
    this.#options = options;
    this.#make = make;
  }

  /** As RuleSetBuilder. */
  *build(
    documents: readonly RuleDocument[],
    nowMs: number,
  ): Generator<
    void,
    | {
        readonly ok: true;
        readonly domains: CheckedDomains<Made>;
        readonly warnings: readonly Problem[];
      }
    | Refused
  > {
    const reporter = new Reporter('(all documents)');
    const domains = new Map<string, CheckedDomain<Made>>();
    const last = new Map<string, Made>();
    yield;
    const groups = yield* groupInSteps(documents);
    for (const [domain, group] of groups) {
      const [first] = group;
      const before = first && this.#known.get(first);
      const known = before && isOf(before, group) ? before : undefined;
      const built =
        known && known.endedCount === countEnded(group, nowMs)
          ? known
          : yield* this.#buildDomain(domain, group, nowMs, reporter.hasErrors, known?.problems);
      yield* addAll(reporter, built.problems);
      if (isComplete(built)) {
        domains.set(domain, built);
        if (first !== undefined) this.#known.set(first, built);
      }
      const made = isComplete(built) ? built.made : this.#last.get(domain);
      if (made !== undefined) last.set(domain, made);
      yield;
    }
    this.#last = last;
    if (reporter.hasErrors) return { ok: false, problems: reporter.toProblems() };
    yield* addAll(reporter, yield* findSharedCounters(groups));
    return { ok: true, domains, warnings: reporter.toProblems() };
  }

  /**
   * Without rules where there are errors, even of other domains. `known`: the problems of documents that were already
   * checked, when the only change is which of their rules have ended.
   */
  *#buildDomain(
    domain: string,
    group: readonly RuleDocument[],
    nowMs: number,
    isLost: boolean,
    known: readonly Problem[] | undefined,
  ): Generator<void, CheckedDomain<Made> | Pick<CheckedDomain<Made>, 'problems'>> {
    const problems = known ?? (yield* this.#check(group, nowMs));
    if (isLost || problems.some(isError)) return { problems };
    const current = yield* findDocumentsAt(group, nowMs);
    const made = yield* this.#make(domain, current, this.#last.get(domain));
    return { documents: group, made, endedCount: countEnded(group, nowMs), problems };
  }

  *#check(group: readonly RuleDocument[], nowMs: number): Generator<void, Problem[]> {
    const problems: Problem[] = [];
    if (!this.#options.mergeDomains) checkSingleDocument(group, problems);
    else yield* checkMergedKeys(group, problems);
    yield* checkReplacedNames(group, problems);
    if (this.#options.fixedWindowsOnly) yield* refuseLimiters(group, problems);
    if (this.#options.warnsOfStops) {
      problems.push(...(yield* findStoppingRules(group, mostStoppingRules)));
    }
    yield* refuseFarEnds(group, nowMs, problems);
    return problems;
  }
}

function* addAll(reporter: Reporter, problems: readonly Problem[]): Generator<void, void> {
  for (const [index, problem] of problems.entries()) {
    if (index % descriptorsAtOnce === descriptorsAtOnce - 1) yield;
    reporter.add(problem);
  }
}

function isComplete<Made>(
  built: Pick<CheckedDomain<Made>, 'problems'>,
): built is CheckedDomain<Made> {
  return 'made' in built;
}

function isOf<Made>(built: CheckedDomain<Made>, group: readonly RuleDocument[]): boolean {
  return (
    built.documents.length === group.length &&
    built.documents.every((document, index) => document === group[index])
  );
}

type BuiltDomain = CheckedDomain<DomainWithNodes>;

function* createRuleSet(built: ReadonlyMap<string, BuiltDomain>): Generator<void, RuleSet> {
  const domains = new Map<string, DomainRules>();
  let limitCount = 0;
  for (const [name, domain] of built) {
    if (domains.size % domainsAtOnce === domainsAtOnce - 1) yield;
    domains.set(name, domain.made.rules);
    limitCount += domain.made.limitCount;
  }
  return Object.freeze({
    domains,
    limitCount,
    describe: () => describeDomains(built),
    trail: () => {
      const ordered = inFileOrder(built);
      const domainLines = ordered.flatMap(([domain, { documents }]) =>
        documents.map((_, index) => `${index === 0 ? 'loading' : 'patching'} domain: ${domain}`),
      );
      return [...domainLines, ...[...walkNodes(ordered)].map(traceNode)];
    },
  });
}

function* describeDomains(domains: ReadonlyMap<string, BuiltDomain>): Generator<string, void> {
  for (const { fullKey, limit, list } of walkNodes(inFileOrder(domains))) {
    const limits = list?.map((listed) => listed.limit) ?? (limit ? [limit] : []);
    for (const each of limits) yield describeLimit(fullKey, each);
  }
}

/** The domains, ordered by the first file of each. */
function inFileOrder(domains: ReadonlyMap<string, BuiltDomain>): [string, BuiltDomain][] {
  const fileOf = ([, { documents }]: [string, BuiltDomain]) => documents[0]?.file ?? '';
  return [...domains].sort((a, b) => compareFiles(fileOf(a), fileOf(b)));
}

/** Parents before their children. */
function* walkNodes(domains: Iterable<readonly [string, BuiltDomain]>): Generator<RuleNode, void> {
  for (const [, { made }] of domains) yield* visitNodes(made.nodes);
}

function* visitNodes(nodes: readonly RuleNode[]): Generator<RuleNode, void> {
  for (const node of nodes) {
    yield node;
    if (node.children.length > 0) yield* visitNodes(node.children);
  }
}

function traceNode({ fullKey, limit }: RuleNode): string {
  const line = `loading descriptor: key=${fullKey}`;
  if (limit === undefined) return line;
  const amount = `requests_per_unit=${limit.requestsPerUnit}, unit=${limit.unit?.toUpperCase() ?? 'UNKNOWN'}`;
  const modes = listModes(limit).map(([name, isOn]) => `${name}=${isOn}`);
  return `${line} ratelimit={${amount}, unlimited=${limit.unlimited}, ${modes.join(', ')}}`;
}

function describeLimit(fullKey: string, limit: Limit): string {
  const unit = limit.unit?.toUpperCase() ?? 'UNKNOWN';
  const modes = listModes(limit).map(([name, isOn]) => `${name}: ${isOn}`);
  const shape = listShape(limit).map(
    ([name, value]) =>
      `${name}: ${typeof value === 'object' ? Object.values(value).join(' for ') : value}`,
  );
  const rest = [...modes, ...shape].join(', ');
  return `${fullKey}: unit=${unit} requests_per_unit=${limit.requestsPerUnit}, ${rest}`;
}

/**
 * Fields that the public message lacks are named only when they are set, since the reference's lines do not have them.
 */
function listModes(limit: Limit): [name: string, isOn: boolean][] {
  return limitModes
    .filter(({ wire, property }) => wire === 'public' || limit[property])
    .map(({ name, property }) => [name, limit[property]]);
}

function checkSingleDocument(documents: readonly RuleDocument[], problems: Problem[]): void {
  const [first, ...others] = documents;
  for (const document of others) {
    const message = `duplicate domain '${toExcerpt(document.domain)}' in config file`;
    const hint = `the first one is at ${positionText(first?.file ?? '', first?.position)}; to merge them, set MERGE_DOMAIN_CONFIG=true (a worker) or --merge-domains (a control plane, check)`;
    const problem = problemOf('error', 'duplicate-domain', document.file, message, hint);
    problems.push({ ...problem, path: 'domain', ...document.position });
  }
}

/** Within one document this was already checked on every level. */
function* checkMergedKeys(
  documents: readonly RuleDocument[],
  problems: Problem[],
): Generator<void, void> {
  const last = documents.at(-1);
  if (last === documents[0]) return;
  type Positions = TextMap<{ document: RuleDocument; descriptor: RuleDescriptor }>;
  /** A rule with an end has a different name than a permanent one with the same key and value. */
  const positions: { ending: Positions; lasting: Positions } = {
    ending: new Map(),
    lasting: new Map(),
  };
  let seen = 0;
  for (const document of documents) {
    for (const [index, descriptor] of document.descriptors.entries()) {
      if (++seen % keysAtOnce === 0) yield;
      const composite = toCompositeKey(descriptor.key, descriptor.value);
      const kind = descriptor.untilMs === undefined ? 'lasting' : 'ending';
      const first = positions[kind].get(composite);
      if (first === undefined) {
        // No later document could repeat these names.
        if (document === last) continue;
        positions[kind] = withRoom(positions[kind]);
        positions[kind].set(composite, { document, descriptor });
      } else if (first.document !== document) {
        const fullKey = toExcerpt(`${document.domain}.${composite}`, 200);
        const message = `duplicate descriptor composite key '${fullKey}'`;
        const path = `descriptors[${index}]`;
        const position = positionText(first.document.file, first.descriptor.position);
        const joined = describeJoined([toJoinedItem(first.descriptor), toJoinedItem(descriptor)]);
        const hint = `the first one is at ${position}; ${joined}`;
        const problem = problemOf('error', 'duplicate-descriptor', document.file, message, hint);
        problems.push({ ...problem, path, ...descriptor.position });
      }
    }
  }
}

function toJoinedItem({ rateLimit, furtherLimits, descriptors }: RuleDescriptor): JoinedItem {
  const limits = rateLimit === undefined ? [] : [rateLimit, ...furtherLimits];
  return { limits: limits.map(toJoinedLimit), hasDescriptors: descriptors.length > 0 };
}

function toJoinedLimit(limit: RateLimitBlock): JoinedLimit {
  const { unit, requestsPerUnit, unitMultiplier, algorithm, unlimited, name } = limit;
  if (unit === undefined || unlimited) return { text: '{unlimited: true}', window: undefined };
  const fields = [
    ...[`unit: ${unit}`, `requests_per_unit: ${requestsPerUnit}`],
    ...listShape(limit).map(
      ([field, value]) => `${field}: ${typeof value === 'object' ? '...' : value}`,
    ),
    ...(name === '' ? [] : [`name: ${toExcerpt(name)}`]),
  ];
  return { text: `{${fields.join(', ')}}`, window: `${unit} ${unitMultiplier} ${algorithm}` };
}

/** How many descriptors are checked between two yields: this takes well below a millisecond. */
const descriptorsAtOnce = 1_000;
/** How many keys are joined between two yields. */
const keysAtOnce = 200;
/** The most warnings for a domain, every rule of which may cause one. */
const mostStoppingRules = 20;
const domainsAtOnce = 500;

/** Limits of the comparisons with names, in total and for one name: finding the nearest of many takes time. */
const maxNameComparisons = 100_000;
const maxComparedNames = 1_000;

/** Warns of replaced names that no rule has: legal, but without effect. */
function* checkReplacedNames(
  documents: readonly RuleDocument[],
  problems: Problem[],
): Generator<void, void> {
  /** The rules that replace names; most documents have none. */
  const replacing: { document: RuleDocument; limit: RateLimitBlock; path: string }[] = [];
  let seen = 0;
  for (const { document, descriptor, toPath } of walkDescriptors(documents)) {
    if (++seen % descriptorsAtOnce === 0) yield;
    const limit = descriptor.rateLimit;
    if (limit && limit.replaces.length > 0) replacing.push({ document, limit, path: toPath() });
  }
  if (replacing.length === 0) return;
  const { names, compared } = yield* collectNames(documents);
  const nearestWord = createBoundedNearestWord(maxNameComparisons);
  for (const { document, limit, path } of replacing) {
    for (const [index, { name, position }] of limit.replaces.entries()) {
      yield;
      if (names.get(name)) continue;
      const shown = `'${toExcerpt(name)}'`;
      const message = `replaces names ${shown}, which no rule of domain '${toExcerpt(document.domain)}' has`;
      const hint = didYouMean(nearestWord(name, compared));
      const itemPath = `${path}.rate_limit.replaces[${index}].name`;
      const problem = problemOf('warning', 'unknown-replaced-name', document.file, message, hint);
      problems.push({ ...problem, path: itemPath, ...position });
    }
  }
}

/** The names of all rules, and those among them that an unknown name is compared with. */
function* collectNames(documents: readonly RuleDocument[]): Generator<
  void,
  {
    readonly names: TextMap<true>;
    readonly compared: readonly string[];
  }
> {
  let names: TextMap<true> = new Map();
  const compared: string[] = [];
  let seen = 0;
  for (const { descriptor } of walkDescriptors(documents)) {
    if (++seen % descriptorsAtOnce === 0) yield;
    const name = descriptor.rateLimit?.name ?? '';
    if (name === '' || names.get(name)) continue;
    names = withRoom(names);
    names.set(name, true);
    if (compared.length <= maxComparedNames) compared.push(name);
  }
  return { names, compared: compared.length > maxComparedNames ? [] : compared };
}

/** Refuses limits that the store cannot count (behaviour: limiter-scripts). */
function* refuseLimiters(
  documents: readonly RuleDocument[],
  problems: Problem[],
): Generator<void, void> {
  let seen = 0;
  for (const { document, descriptor, toPath } of walkDescriptors(documents)) {
    if (++seen % descriptorsAtOnce === 0) yield;
    const { rateLimit, furtherLimits, position } = descriptor;
    const limits = rateLimit === undefined ? [] : [rateLimit, ...furtherLimits];
    const limiter = limits.find(({ algorithm }) => algorithm !== 'fixed_window');
    if (limiter === undefined) continue;
    const message = `${limiter.algorithm} cannot be counted in a memory cache (BACKEND_TYPE)`;
    const hint = 'write algorithm: fixed_window, or use Redis or Valkey';
    const field = furtherLimits.length > 0 ? 'rate_limits' : 'rate_limit.algorithm';
    const itemPath = `${toPath()}.${field}`;
    const problem = problemOf('error', 'unsupported-algorithm', document.file, message, hint);
    problems.push({ ...problem, path: itemPath, ...position });
  }
}

/** Refuses ends so far ahead that they are hardly intended. */
function* refuseFarEnds(
  documents: readonly RuleDocument[],
  nowMs: number,
  problems: Problem[],
): Generator<void, void> {
  let seen = 0;
  for (const document of documents) {
    const ends: number[] = [];
    for (const { descriptor, toPath } of walkDescriptors([document])) {
      if (++seen % descriptorsAtOnce === 0) yield;
      const { untilMs, position } = descriptor;
      if (untilMs === undefined) continue;
      ends.push(untilMs);
      if (!isTooFar(untilMs, nowMs)) continue;
      const message = `until is ${toTimeText(untilMs)}, more than ${mostDaysAhead} days ahead`;
      const hint = 'write an earlier time, or leave until out for a rule that stays';
      const problem = problemOf('error', 'invalid-until', document.file, message, hint);
      problems.push({ ...problem, path: `${toPath()}.until`, ...position });
    }
    yield* rememberEnds(document, ends);
  }
}

function positionText(file: string, position: Position | undefined): string {
  return position ? `${file}:${position.line}:${position.column}` : file;
}
