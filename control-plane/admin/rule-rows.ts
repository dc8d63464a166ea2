// The rules of a domain as rows for people: a parent before its children. Pure.
import Type from 'typebox';
import { runAtOnce } from '../../shared/in-slices.ts';
import { groupByDomain } from '../../shared/rules/file-order.ts';
import { describeShape, windowSecondsOf } from '../../shared/rules/limit-shape.ts';
import { type PlacedRule, placeDocuments } from '../../shared/rules/lookup/placed-rule.ts';
import type {
  RateLimitBlock,
  RuleDescriptor,
  RuleDocument,
} from '../../shared/rules/rule-document.ts';
import { toTimeText } from '../../shared/rules/rule-end.ts';
import { limitModes } from '../../shared/rules/rule-keys.ts';

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
    column: Type.Optional(Type.Integer({ description: 'Of the line; older ones do not give it' })),
  },
  { title: 'RuleRow' },
);
export type RuleRow = Type.Static<typeof ruleRowJson>;

const placedByDocuments = new WeakMap<
  readonly RuleDocument[],
  ReadonlyMap<string, readonly PlacedRule[]>
>();
const rowsByRules = new WeakMap<readonly PlacedRule[], readonly RuleRow[]>();

/** `d2` before `d10`. */
const names = new Intl.Collator('en', { numeric: true });

/** As `placeRules`, domains in the order of their names; the same documents are placed once. */
export function placedRules(
  documents: readonly RuleDocument[],
): ReadonlyMap<string, readonly PlacedRule[]> {
  return runAtOnce(placingRules(documents));
}

/** The same, in steps. */
export function* placingRules(
  documents: readonly RuleDocument[],
): Generator<void, ReadonlyMap<string, readonly PlacedRule[]>> {
  const known = placedByDocuments.get(documents);
  if (known !== undefined) return known;
  const byName = ([a]: [string, unknown], [b]: [string, unknown]) => names.compare(a, b);
  const found: [string, readonly PlacedRule[]][] = [];
  for (const [domain, group] of groupByDomain(documents)) {
    found.push([domain, yield* placeDocuments(group)]);
    yield;
  }
  const placed = new Map(found.sort(byName));
  placedByDocuments.set(documents, placed);
  return placed;
}

/** `rules` is the top level of the domain. */
export function rowsOf(domain: string, rules: readonly PlacedRule[]): readonly RuleRow[] {
  const known = rowsByRules.get(rules);
  if (known !== undefined) return known;
  const rows: RuleRow[] = [];
  addRows(rows, rules, { rule: domain, entries: [], until: null, owner: null });
  rowsByRules.set(rules, rows);
  return rows;
}

/** The rows that contain the text, in any case. */
export function findRows(rows: readonly RuleRow[], text: string): readonly RuleRow[] {
  const sought = text.toLowerCase();
  if (sought === '') return rows;
  return rows.filter(({ rule, limits, modes, owner, file }) =>
    [rule, ...limits, ...modes, owner ?? '', file].some((each) =>
      each.toLowerCase().includes(sought),
    ),
  );
}

function addRows(
  rows: RuleRow[],
  rules: readonly PlacedRule[],
  above: Pick<RuleRow, 'rule' | 'entries' | 'until' | 'owner'>,
): void {
  for (const { descriptor, document, composite, children } of rules) {
    const { key, value, rateLimit, metadata, position } = descriptor;
    const rule = `${above.rule}.${composite}`;
    const owner = textOf(metadata?.['owner']) ?? textOf(metadata?.['team']) ?? above.owner;
    const entries = [...above.entries, { key, value }];
    // One above it ends first: they are compared as texts in UTC.
    const own = descriptor.untilMs === undefined ? null : toTimeText(descriptor.untilMs);
    const until = own !== null && (above.until === null || own < above.until) ? own : above.until;
    rows.push({
      rule,
      entries,
      limits: describeLimits(descriptor),
      perMinute:
        rateLimit === undefined || rateLimit.unlimited ? null : toPerMinute(rateLimit, entries),
      modes: limitModes.flatMap(({ name, property }) => (descriptor[property] ? name : [])),
      until,
      owner,
      file: document.file,
      line: position?.line ?? null,
      ...(position && { column: position.column }),
    });
    addRows(rows, children, { rule, entries, until, owner });
  }
}

/** Empty for a rule without one. */
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
