// Finds the descriptors that are lifted now, which a rule that ends answers without counting; for everything that
// shows counters. Pure.
import type { Entry } from '../../shared/rules/rule.ts';
import {
  type RuleDescriptor,
  type RuleDocument,
  toCompositeKey,
} from '../../shared/rules/rule-document.ts';
import { documentsAt, nextEndOf } from '../../shared/rules/rule-end.ts';

/** When the lift of a descriptor of exactly these values ends, in milliseconds; undefined where it is not lifted. */
export type FindLift = (domain: string, entries: readonly Entry[]) => number | undefined;

const known = new WeakMap<readonly RuleDocument[], FindLift>();

/** `documents` are those in force; `nowMs` is wall time. */
export function createFindLift(documents: readonly RuleDocument[], nowMs: number): FindLift {
  if (nextEndOf(documents, nowMs) === undefined) return () => undefined;
  const current = documentsAt(documents, nowMs);
  const before = known.get(current);
  if (before !== undefined) return before;
  const ends = toLifts(current, nowMs);
  const find: FindLift = (domain, entries) =>
    ends.get(
      JSON.stringify([domain, ...entries.map(({ key, value }) => toCompositeKey(key, value))]),
    );
  known.set(current, find);
  return find;
}

/** The most lifts that one sentence names. */
const maxNamed = 10;

/**
 * The lifts of the documents `before` that are not in `after`, the first ten, for people: such as `shop
 * user_ada`.
 */
export function listEndedLifts(
  before: readonly RuleDocument[],
  after: readonly RuleDocument[],
  nowMs: number,
): string[] {
  const left = toLifts(after, nowMs);
  return [...toLifts(before, nowMs).keys()]
    .filter((chain) => !left.has(chain))
    .slice(0, maxNamed)
    .map((chain) => (JSON.parse(chain) as string[]).join(' '));
}

/** When each ends, by domain and composite keys as JSON. */
function toLifts(documents: readonly RuleDocument[], nowMs: number): Map<string, number> {
  const ends = new Map<string, number>();
  for (const { domain, descriptors } of documentsAt(documents, nowMs)) {
    addLifts(ends, descriptors, [domain], undefined);
  }
  return ends;
}

/** `endMs`: of the rules above. */
function addLifts(
  ends: Map<string, number>,
  rules: readonly RuleDescriptor[],
  above: readonly string[],
  endMs: number | undefined,
): void {
  for (const { key, value, untilMs, rateLimit, descriptors } of rules) {
    const end = untilMs !== undefined && (endMs === undefined || untilMs < endMs) ? untilMs : endMs;
    const chain = [...above, toCompositeKey(key, value)];
    if (end !== undefined && rateLimit?.unlimited) ends.set(JSON.stringify(chain), end);
    addLifts(ends, descriptors, chain, end);
  }
}
