// Compares two sets of rules by their effect on requests: the order of files and rules and comments do not matter, and
// a removed rule is compared with its replacement.
import { isDeepStrictEqual } from 'node:util';
import { runAtOnce } from '../../shared/in-slices.ts';
import { groupInSteps } from '../../shared/rules/file-order.ts';
import {
  describeShape,
  describeTime,
  toNumberText,
  windowSecondsOf,
} from '../../shared/rules/limit-shape.ts';
import { type LocatedRule, locateDocuments } from '../../shared/rules/lookup/located-rule.ts';
import { createDomainTree } from '../../shared/rules/lookup/rule-tree.ts';
import type { DomainRules, Entry, Limit, Match } from '../../shared/rules/rule.ts';
import type { RuleDocument } from '../../shared/rules/rule-document.ts';
import { findDocumentsAt, hasEnds, toTimeText } from '../../shared/rules/rule-end.ts';
import { limitModes } from '../../shared/rules/rule-keys.ts';
import { sortInSteps } from '../../shared/sorted-in-steps.ts';
import type { CheckedRules } from './checked-rules.ts';
import { findingChangedPositions } from './wildcard-order.ts';

export type RuleChangeKind =
  | 'domain_added'
  | 'domain_removed'
  | 'limit_added'
  | 'limit_removed'
  | 'raised'
  | 'lowered'
  /** The rate stays the same but is counted in another window. */
  | 'window_changed'
  /** The rate stays the same but is counted by another algorithm. */
  | 'algorithm_changed'
  /** How much a token bucket lets pass at once. */
  | 'burst_changed'
  /** Limits of a list are added, removed or reordered. */
  | 'list_changed'
  /** Too many wildcards have changed places to list the text that both match. */
  | 'order_changed'
  | 'blocked'
  | 'unblocked'
  | 'unlimited'
  | 'no_longer_unlimited'
  | `${(typeof limitModes)[number]['name']}_${'on' | 'off'}`
  | 'sharing_changed'
  | 'replaces_changed'
  | 'name_changed'
  | 'metric_changed'
  | 'metadata_changed'
  /** The end of a rule changes. */
  | 'end_changed'
  /** Caused by the file of the node groups (snapshot/node-change.ts). */
  | 'group_gets_domain'
  | 'group_loses_domain'
  | 'group_steps_changed';

export interface RuleChange {
  readonly kind: RuleChangeKind;
  readonly domain: string;
  /** The affected requests: for each entry a key and a value or pattern, '' for any value. Empty for a domain. */
  readonly requests: readonly Entry[];
  /** The change, human-readable, such as `100 per hour -> 10 per minute (600 per hour)`. */
  readonly text: string;
  readonly before: Limit | undefined;
  readonly after: Limit | undefined;
  /** For a limit of a list after the first: its window in seconds. */
  readonly furtherWindow?: number;
  /** For a list with limits that are added or removed: their windows in seconds. */
  readonly windows?: readonly number[];
  /** Whether the change concerns the rules that remain once every rule with an end has ended. */
  readonly isLasting?: true;
  /** The rule for exactly these requests, if any. */
  readonly ruleBefore: LocatedRule | undefined;
  readonly ruleAfter: LocatedRule | undefined;
}

/** One side: valid rules, and the documents that contain them. */
export interface ComparedRules {
  readonly ruleSet: CheckedRules;
  readonly documents: readonly RuleDocument[];
}

/** Ordered by domain, then by the old rules, then by the new rules. */
export function compareRules(before: ComparedRules, after: ComparedRules): RuleChange[] {
  return runAtOnce(comparing(before, after, (change) => change));
}

/** Like `compareRules`, in steps. `toItem` maps each change to what is retained: a change itself references rules of both sides. */
export function* comparing<Item>(
  before: ComparedRules,
  after: ComparedRules,
  toItem: (change: RuleChange) => Item,
): Generator<void, Item[]> {
  const groupsBefore = yield* groupInSteps(before.documents);
  const groupsAfter = yield* groupInSteps(after.documents);
  const added = [...groupsAfter.keys()].filter((domain) => !groupsBefore.has(domain));
  const domains = yield* sortInSteps([...groupsBefore.keys(), ...added], compareNames);
  const items: Item[] = [];
  const add = (change: RuleChange) => void items.push(toItem(change));
  for (const domain of domains) {
    yield;
    const [was, is] = [before.ruleSet.domains.get(domain), after.ruleSet.domains.get(domain)];
    if (was === undefined) add({ ...ofDomain('domain_added', domain), text: 'the domain is new' });
    if (is === undefined)
      add({ ...ofDomain('domain_removed', domain), text: 'the domain is gone' });
    if (was === is) continue;
    const rulesBefore = was && (yield* was.lookup());
    const rulesAfter = is && (yield* is.lookup());
    const [had, has] = [groupsBefore.get(domain) ?? [], groupsAfter.get(domain) ?? []];
    const ends = [...had, ...has].some(hasEnds);
    const lastingBefore = ends ? yield* findLasting(domain, had) : undefined;
    const lastingAfter = ends ? yield* findLasting(domain, has) : undefined;
    const [locatedBefore, locatedAfter] = [
      yield* locateDocuments(had),
      yield* locateDocuments(has),
    ];
    const groups = yield* groupRequests(locatedBefore, locatedAfter);
    if (!(yield* addCommon(groups, locatedBefore, locatedAfter))) {
      add({ ...ofDomain('order_changed', domain), text: 'many patterns have changed places' });
    }
    for (const group of groups.values()) {
      const sample = group.requests.map(toSample);
      const compare = (one: DomainRules | undefined, other: DomainRules | undefined) =>
        compareMatches(domain, group, one?.match(sample), other?.match(sample));
      const now = [...compare(rulesBefore, rulesAfter), ...compareEnds(domain, group)];
      for (const change of now) add(change);
      for (const change of compare(lastingBefore, lastingAfter)) {
        if (!now.some(({ kind, text }) => kind === change.kind && text === change.text)) {
          add({ ...change, text: `${change.text}, once rules have ended`, isLasting: true });
        }
      }
      yield;
    }
  }
  return items;
}

/** The permanent rules of a domain, which others can replace until they end. */
function* findLasting(
  domain: string,
  documents: readonly RuleDocument[],
): Generator<void, DomainRules> {
  const lasting = yield* findDocumentsAt(documents, Number.POSITIVE_INFINITY);
  const lists = lasting.map(({ descriptors }) => descriptors);
  return (yield* createDomainTree(domain, lists, false)).rules;
}

function compareEnds(domain: string, group: RequestGroup): RuleChange[] {
  const { endBefore, endAfter } = group;
  if (endBefore === undefined || endAfter === undefined || endBefore === endAfter) return [];
  const text = `until ${toTimeText(endBefore)} -> until ${toTimeText(endAfter)}`;
  return [
    {
      ...toPositions(group),
      kind: 'end_changed',
      domain,
      text,
      before: undefined,
      after: undefined,
    },
  ];
}

function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The requests that a rule of either side is written for. */
interface RequestGroup extends Pick<RuleChange, 'requests' | 'ruleBefore' | 'ruleAfter'> {
  /** When the rule for them ends. */
  readonly endBefore?: number | undefined;
  readonly endAfter?: number | undefined;
}

function toPositions({ requests, ruleBefore, ruleAfter }: RequestGroup) {
  return { requests, ruleBefore, ruleAfter };
}

function* groupRequests(
  before: readonly LocatedRule[],
  after: readonly LocatedRule[],
): Generator<void, Map<string, RequestGroup>> {
  const groups = new Map<string, RequestGroup>();

  function* visit(
    rule: LocatedRule,
    above: readonly Entry[],
    side: 'Before' | 'After',
  ): Generator<void, void> {
    const { key, value, untilMs } = rule.descriptor;
    const requests = [...above, { key, value }];
    const identity = toIdentity(requests);
    const known = groups.get(identity) ?? { requests, ruleBefore: undefined, ruleAfter: undefined };
    const end = untilMs === undefined ? {} : { [`end${side}`]: untilMs };
    groups.set(identity, { ...known, [`rule${side}`]: rule, ...end });
    yield;
    for (const child of rule.children) yield* visit(child, requests, side);
  }

  for (const rule of before) yield* visit(rule, [], 'Before');
  for (const rule of after) yield* visit(rule, [], 'After');
  return groups;
}

function toIdentity(requests: readonly Entry[]): string {
  return JSON.stringify(requests.map(({ key, value }) => [key, value]));
}

/** The most groups of requests matched by two wildcards that have changed places, in one domain. */
const maxCommon = 5_000;

/** Adds these groups; false if there are too many. In steps. */
function* addCommon(
  groups: Map<string, RequestGroup>,
  before: readonly LocatedRule[],
  after: readonly LocatedRule[],
): Generator<void, boolean> {
  let left = maxCommon;

  function* visit(
    rule: LocatedRule,
    requests: readonly Entry[],
    side: 'ruleBefore' | 'ruleAfter',
  ): Generator<void, void> {
    yield;
    if (--left < 0) return;
    const identity = toIdentity(requests);
    const none = { requests, ruleBefore: undefined, ruleAfter: undefined };
    const known = groups.get(identity) ?? none;
    groups.set(identity, { ...known, [side]: known[side] ?? rule });
    for (const child of rule.children) {
      const { key, value } = child.descriptor;
      yield* visit(child, [...requests, { key, value }], side);
    }
  }

  for (const positions of findingChangedPositions(before, after)) {
    yield;
    if (positions === undefined) continue;
    const { above, entry, was, now } = positions;
    if (entry === undefined || left < 0) return false;
    yield* visit(was, [...above, entry], 'ruleBefore');
    yield* visit(now, [...above, entry], 'ruleAfter');
  }
  return left >= 0;
}

/** A private-use character that no rule contains, so only a star or a rule for any value matches it. */
const anything = '\u{e000}';

/** A request that matches the rule, and no other rule more specifically. */
function toSample({ key, value }: Entry): Entry {
  return {
    key: key.replaceAll('*', anything),
    value: value === '' ? anything : value.replaceAll('*', anything),
  };
}

function compareMatches(
  domain: string,
  group: RequestGroup,
  was: Match | undefined,
  is: Match | undefined,
): RuleChange[] {
  const [before, after] = [was?.limit, is?.limit];
  const changes: RuleChange[] = [];
  const positions = toPositions(group);
  const add = (kind: RuleChangeKind, text: string) =>
    changes.push({ ...positions, kind, domain, text, before, after });

  if (before === undefined || after === undefined) {
    const step = compareLimits(before, after);
    if (step) add(step, describeStep(was, is));
    return changes;
  }
  changes.push(...compareLists(was, is).map((change) => ({ ...positions, domain, ...change })));

  for (const { name, property } of limitModes) {
    const has = after[property];
    if (before[property] === has) continue;
    add(`${name}_${has ? 'on' : 'off'}`, has ? 'off -> on' : 'on -> off');
  }
  const texts = [
    ['sharing_changed', sharingOf(was), sharingOf(is)],
    ['replaces_changed', replacedBy(was), replacedBy(is)],
    ['name_changed', namesOf(was), namesOf(is)],
    ['metric_changed', toShown(was?.metricKey ?? ''), toShown(is?.metricKey ?? '')],
  ] as const;
  for (const [kind, had, has] of texts) {
    if (had !== has) add(kind, `${had || 'none'} -> ${has || 'none'}`);
  }
  if (!isDeepStrictEqual(before.metadata, after.metadata)) {
    add('metadata_changed', `${toJson(before)} -> ${toJson(after)}`);
  }
  return changes;
}

function compareLimits(
  before: Limit | undefined,
  after: Limit | undefined,
): RuleChangeKind | undefined {
  if (after === undefined) return before && 'limit_removed';
  if (after.unlimited) return before?.unlimited ? undefined : 'unlimited';
  const isBlocked = after.requestsPerUnit === 0;
  if (before === undefined) return isBlocked ? 'blocked' : 'limit_added';
  if (before.unlimited) return isBlocked ? 'blocked' : 'no_longer_unlimited';
  const wasBlocked = before.requestsPerUnit === 0;
  if (wasBlocked || isBlocked) {
    if (wasBlocked && isBlocked) return undefined;
    return isBlocked ? 'blocked' : 'unblocked';
  }
  // Cross-multiplied, so that equal rates compare as exactly equal.
  const was = before.requestsPerUnit * windowSecondsOf(after);
  const is = after.requestsPerUnit * windowSecondsOf(before);
  if (was !== is) return is > was ? 'raised' : 'lowered';
  return windowSecondsOf(before) === windowSecondsOf(after) ? undefined : 'window_changed';
}

/** The changes that callers notice besides the rate: bursts at a window's edge, bursts at once, and the cost of refused
 * hits. */
function compareShapes(before: Limit, after: Limit): RuleChangeKind[] {
  if (before.unlimited || after.unlimited) return [];
  const isOther =
    before.algorithm !== after.algorithm || before.countOverLimit !== after.countOverLimit;
  if (isOther) return ['algorithm_changed'];
  return before.limiter?.capacity !== after.limiter?.capacity && before.burst !== after.burst
    ? ['burst_changed']
    : [];
}

/** The limits whose counters start empty: counter keys contain the window and the tag of their limit. */
function listRestarted(before: readonly Limit[], after: readonly Limit[]): string[] {
  const toCounter = (limit: Limit) => `${limit.counterTag} ${windowSecondsOf(limit)}`;
  const known = new Set(before.map(toCounter));
  return after.filter((limit) => !known.has(toCounter(limit))).map(describeShape);
}

type ListChange = Pick<
  RuleChange,
  'kind' | 'text' | 'before' | 'after' | 'furtherWindow' | 'windows'
>;

/** Compares the limits of a rule: first those with equal windows, then the others in order; the rest are added or
 * removed. */
function compareLists(was: Match | undefined, is: Match | undefined): ListChange[] {
  const [all, left] = [limitsOf(was), limitsOf(is)];
  const after = [...left];
  const pairs: (readonly [Limit, Limit])[] = [];
  const unpaired: Limit[] = [];
  for (const limit of all) {
    const at = left.findIndex((each) => windowSecondsOf(each) === windowSecondsOf(limit));
    const [other] = at === -1 ? [] : left.splice(at, 1);
    if (other === undefined) unpaired.push(limit);
    else pairs.push([limit, other]);
  }
  while (unpaired.length > 0 && left.length > 0) {
    pairs.push([unpaired.shift() as Limit, left.shift() as Limit]);
  }
  const changes = pairs.flatMap(([limit, other]): ListChange[] => {
    const step = compareLimits(limit, other);
    const kinds = [...(step ? [step] : []), ...compareShapes(limit, other)];
    const isFirst = limit === all[0] && other === after[0];
    const text = `${describeLimit(limit, other)} -> ${describeLimit(other, limit)}`;
    const more = isFirst ? {} : { furtherWindow: windowSecondsOf(limit) };
    return kinds.map((kind) => ({ kind, text, before: limit, after: other, ...more }));
  });
  const isElsewhere = unpaired.length + left.length > 0;
  if (!isElsewhere && (changes.length > 0 || describeList(all) === describeList(after))) {
    return changes;
  }
  const restarted = listRestarted(all, after);
  const counts =
    restarted.length === 0 ? '' : `; starts counting from zero: ${restarted.join(' and ')}`;
  const text = `${describeList(all)} -> ${describeList(after)}${counts}`;
  const windows = isElsewhere ? { windows: [...unpaired, ...left].map(windowSecondsOf) } : {};
  const change = { kind: 'list_changed', text, before: was?.limit, after: is?.limit } as const;
  return [...changes, { ...change, ...windows }];
}

function limitsOf(match: Match | undefined): Limit[] {
  const parts = match?.parts ?? (match === undefined ? [] : [match]);
  return parts.map(({ limit }) => limit);
}

function describeList(limits: readonly Limit[]): string {
  return limits.map(describeShape).join(' and ');
}

function namesOf(match: Match | undefined): string {
  const names = limitsOf(match).flatMap(({ name }) => name || []);
  return names.sort().join(', ');
}

function replacedBy(match: Match | undefined): string {
  const names = limitsOf(match).flatMap(({ replaces }) => replaces);
  return [...new Set(names)].sort().join(', ');
}

function describeStep(was: Match | undefined, is: Match | undefined): string {
  const describe = (match: Match | undefined) =>
    limitsOf(match)
      .map((limit) => describeLimit(limit, undefined))
      .join(' and ');
  return `${describe(was) || 'no limit'} -> ${describe(is) || 'no limit'}`;
}

/** `10 per minute`; also per the unit of `other` when that one is longer. */
function describeLimit(limit: Limit, other: Limit | undefined): string {
  if (limit.unlimited) return 'unlimited';
  const mode = limit.shadowMode ? ', in shadow mode' : '';
  if (limit.requestsPerUnit === 0) return `${describeShape(limit)}, all blocked${mode}`;
  const isShorter = other?.unit !== undefined && windowSecondsOf(limit) < windowSecondsOf(other);
  const rate =
    (limit.requestsPerUnit * (isShorter ? windowSecondsOf(other) : 0)) / windowSecondsOf(limit);
  const per = isShorter ? describeTime(other) : '';
  const same = isShorter ? ` (${toNumberText(Number(rate.toPrecision(4)))} per ${per})` : '';
  return `${describeShape(limit)}${same}${mode}`;
}

function sharingOf(match: Match | undefined): string {
  return match?.sharedValues?.filter((pattern) => pattern !== undefined).join(', ') ?? '';
}

function toShown(text: string): string {
  return text.replaceAll(anything, '<value>');
}

function toJson({ metadata }: Limit): string {
  return metadata === undefined ? 'none' : JSON.stringify(metadata);
}

function ofDomain(kind: RuleChangeKind, domain: string) {
  const none = { before: undefined, after: undefined, ruleBefore: undefined, ruleAfter: undefined };
  return { kind, domain, requests: [], ...none };
}
