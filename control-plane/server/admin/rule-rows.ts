// The rules of a domain as rows, parents before their children. Pure.
import Type from 'typebox';
import { MadeOnce } from '../../../shared/made-once.ts';
import { didYouMean, nearestWord } from '../../../shared/nearest-word.ts';
import { groupByDomain } from '../../../shared/rules/file-order.ts';
import { describeShape, windowSecondsOf } from '../../../shared/rules/limit-shape.ts';
import { type LocatedRule, locateDocuments } from '../../../shared/rules/lookup/located-rule.ts';
import type {
  RateLimitBlock,
  RuleDescriptor,
  RuleDocument,
} from '../../../shared/rules/rule-document.ts';
import { findDocumentsAt, toTimeText } from '../../../shared/rules/rule-end.ts';
import { limitModes } from '../../../shared/rules/rule-keys.ts';

export const ruleRowJson = Type.Object(
  {
    rule: Type.String({
      description: 'Domain, and key or key_value of each level: the metric key without values',
    }),
    entries: Type.Array(Type.Object({ key: Type.String(), value: Type.String() }), {
      description: 'From the top to the rule; a value is empty where the rule is for every value',
    }),
    limits: Type.Array(Type.String(), { description: 'In words; empty for a rule without one' }),
    perMinute: Type.Union([Type.Number(), Type.Null()], {
      description:
        'How many hits a minute its first limit lets pass, of a rule with one counter; null where each value has its own',
    }),
    modes: Type.Array(Type.String(), { description: 'Such as shadow_mode' }),
    until: Type.Union([Type.String(), Type.Null()], {
      description:
        'RFC 3339: when the rule ends by itself, or one above it; null of one that stays',
    }),
    owner: Type.Union([Type.String(), Type.Null()], {
      description: '`owner` or `team` of the metadata of the rule, or of one above it',
    }),
    file: Type.String(),
    line: Type.Union([Type.Integer(), Type.Null()]),
    column: Type.Optional(Type.Integer({ description: 'Of the line; omitted where that is null' })),
  },
  { title: 'RuleRow' },
);
export type RuleRow = Type.Static<typeof ruleRowJson>;

type Located = ReadonlyMap<string, readonly LocatedRule[]>;
const locatedByDocuments = new MadeOnce<readonly RuleDocument[], Located>();

/** Sorts `d2` before `d10`. */
const names = new Intl.Collator('en', { numeric: true });

/** Like `locateRules`, with domains in the order of their names; the same documents are processed once. In steps. */
export function locatingRules(documents: readonly RuleDocument[]): Generator<void, Located> {
  return locatedByDocuments.of(documents, () => locating(documents));
}

function* locating(documents: readonly RuleDocument[]): Generator<void, Located> {
  const byName = ([a]: [string, unknown], [b]: [string, unknown]) => names.compare(a, b);
  const found: [string, readonly LocatedRule[]][] = [];
  for (const [domain, group] of groupByDomain(documents)) {
    found.push([domain, yield* locateDocuments(group)]);
    yield;
  }
  return new Map(found.sort(byName));
}

/** The top level of one domain, without the rules that have ended (behaviour: rules-that-end); undefined if the documents
 * do not have it. `nowMs`: wall time. In steps. */
export function* findRulesNow(
  documents: readonly RuleDocument[],
  domain: string,
  nowMs: number,
): Generator<void, readonly LocatedRule[] | undefined> {
  return (yield* locatingRules(yield* findDocumentsAt(documents, nowMs))).get(domain);
}

/** Human-readable. `known`: the names of the existing domains. */
export function toUnknownDomainText(domain: string, known: Iterable<string>): string {
  const hint = didYouMean(nearestWord(domain, [...known]), '; ') ?? '';
  return `there are no rules for domain ${domain}${hint}`;
}

/** A rule with its ancestors. */
export interface ListedRule {
  /** Equal to `RuleRow.rule`. */
  readonly name: string;
  readonly located: LocatedRule;
  readonly above: ListedRule | undefined;
}

/** Parents before their children. `rules` is the top level of the domain. */
export function listRules(
  domain: string,
  rules: readonly LocatedRule[],
): Generator<ListedRule, void> {
  return listBelow(domain, rules, undefined);
}

function* listBelow(
  start: string,
  rules: readonly LocatedRule[],
  above: ListedRule | undefined,
): Generator<ListedRule, void> {
  for (const located of rules) {
    const rule = { name: `${start}.${located.composite}`, located, above };
    yield rule;
    if (located.children.length > 0) yield* listBelow(rule.name, located.children, rule);
  }
}

/** Rules per step. */
const rulesAtOnce = 100;

export function* countingRules(rules: readonly LocatedRule[]): Generator<void, number> {
  let count = 0;
  for (const _ of listRules('', rules)) if (++count % rulesAtOnce === 0) yield;
  return count;
}

export interface RowsQuestion {
  /** In any letter case; '' matches all. */
  readonly text: string;
  readonly offset: number;
  readonly limit: number;
}

interface FoundRules {
  /** The number of rules that contain the text. */
  readonly total: number;
  readonly found: readonly ListedRule[];
}

/** The rules of a domain whose rows contain this text; `rules` is its top level. In steps. */
export function* findingRules(
  domain: string,
  rules: readonly LocatedRule[],
  { text, offset, limit }: RowsQuestion,
): Generator<void, FoundRules> {
  const sought = text.toLowerCase();
  const found: ListedRule[] = [];
  let [seen, total] = [0, 0];
  for (const rule of listRules(domain, rules)) {
    if (++seen % rulesAtOnce === 0) yield;
    if (!hasText(rule, sought)) continue;
    if (total >= offset && found.length < limit) found.push(rule);
    total++;
  }
  return { total, found };
}

/** Whether the rule's row contains the text, which is in lower case. */
export function hasText(rule: ListedRule, sought: string): boolean {
  if (sought === '' || rule.name.toLowerCase().includes(sought)) return true;
  const { limits, modes, owner, file } = toRow(rule);
  return [...limits, ...modes, owner ?? '', file].some((text) =>
    text.toLowerCase().includes(sought),
  );
}

export function toRow(rule: ListedRule): RuleRow {
  const { descriptor, document } = rule.located;
  const { rateLimit, position } = descriptor;
  const lineage = lineageOf(rule);
  const entries = lineage.map(({ key, value }) => ({ key, value }));
  const ends = lineage.flatMap(({ untilMs }) => untilMs ?? []);
  return {
    rule: rule.name,
    entries,
    limits: describeLimits(descriptor),
    perMinute:
      rateLimit === undefined || rateLimit.unlimited ? null : toPerMinute(rateLimit, entries),
    modes: limitModes.flatMap(({ name, property }) => (descriptor[property] ? name : [])),
    // An ancestor may end first.
    until: ends.length === 0 ? null : toTimeText(Math.min(...ends)),
    owner: lineage.map(ownerOf).findLast((owner) => owner !== undefined) ?? null,
    file: document.file,
    line: position?.line ?? null,
    ...(position && { column: position.column }),
  };
}

/** From the top level to the rule. */
export function lineageOf(rule: ListedRule): RuleDescriptor[] {
  const lineage: RuleDescriptor[] = [];
  for (let each: ListedRule | undefined = rule; each !== undefined; each = each.above) {
    lineage.push(each.located.descriptor);
  }
  return lineage.reverse();
}

function ownerOf({ metadata }: RuleDescriptor): string | undefined {
  return textOf(metadata?.['owner']) ?? textOf(metadata?.['team']);
}

/** Empty for a rule without a limit. */
export function describeLimits({
  rateLimit,
  furtherLimits,
}: Pick<RuleDescriptor, 'rateLimit' | 'furtherLimits'>): string[] {
  return rateLimit === undefined ? [] : [rateLimit, ...furtherLimits].map(describe);
}

function describe(block: RateLimitBlock): string {
  const named = block.name === '' ? '' : `, named ${block.name}`;
  return `${block.unlimited ? 'unlimited' : describeShape(block)}${named}`;
}

function toPerMinute(
  { requestsPerUnit, unit, unitMultiplier }: RateLimitBlock,
  entries: RuleRow['entries'],
): number | null {
  const hasOneCounter = entries.every(({ value }) => value !== '' && !value.includes('*'));
  if (!hasOneCounter) return null;
  return (requestsPerUnit * 60) / windowSecondsOf({ unit, unitMultiplier });
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
