// Finds the descriptors that are lifted now: a rule that ends answers them without counting. Used wherever counters are
// shown. Pure.
import { MadeOnce } from '../../../shared/made-once.ts';
import type { Entry } from '../../../shared/rules/rule.ts';
import {
  type RuleDescriptor,
  type RuleDocument,
  toCompositeKey,
} from '../../../shared/rules/rule-document.ts';
import { findDocumentsAt, nextEndOf } from '../../../shared/rules/rule-end.ts';

/** When the lift of a descriptor with exactly these values ends, in milliseconds; undefined if it is not lifted. */
export type FindLift = (domain: string, entries: readonly Entry[]) => number | undefined;

const liftsByDocuments = new MadeOnce<readonly RuleDocument[], FindLift>();

/** `documents` are those in force; `nowMs` is wall time. In steps. */
export function* creatingFindLift(
  documents: readonly RuleDocument[],
  nowMs: number,
): Generator<void, FindLift> {
  if (nextEndOf(documents, nowMs) === undefined) return () => undefined;
  const current = yield* findDocumentsAt(documents, nowMs);
  return yield* liftsByDocuments.of(current, () => creatingLookup(current, nowMs));
}

function* creatingLookup(
  documents: readonly RuleDocument[],
  nowMs: number,
): Generator<void, FindLift> {
  const ends = yield* findingLifts(documents, nowMs);
  return (domain, entries) =>
    ends.get(
      JSON.stringify([domain, ...entries.map(({ key, value }) => toCompositeKey(key, value))]),
    );
}

/** The most lifts that one sentence names. */
const maxNamed = 10;

/** The first ten lifts in the documents `before` that are not in `after`, such as `shop user_ada`. In steps. */
export function* listingEndedLifts(
  before: readonly RuleDocument[],
  after: readonly RuleDocument[],
  nowMs: number,
): Generator<void, string[]> {
  const left = yield* findingLifts(after, nowMs);
  const had = yield* findingLifts(before, nowMs);
  return [...had.keys()]
    .filter((chain) => !left.has(chain))
    .slice(0, maxNamed)
    .map((chain) => (JSON.parse(chain) as string[]).join(' '));
}

/** The end of each lift, by domain and composite keys as JSON. */
function* findingLifts(
  documents: readonly RuleDocument[],
  nowMs: number,
): Generator<void, Map<string, number>> {
  const ends = new Map<string, number>();
  if (nextEndOf(documents, nowMs) === undefined) return ends;
  for (const { domain, descriptors } of yield* findDocumentsAt(documents, nowMs)) {
    yield* addingLifts(ends, descriptors, [domain], undefined);
  }
  return ends;
}

/** Rules per step. */
const rulesAtOnce = 100;

/** `endMs`: the end of the rules above. */
function* addingLifts(
  ends: Map<string, number>,
  rules: readonly RuleDescriptor[],
  above: readonly string[],
  endMs: number | undefined,
): Generator<void, void> {
  for (const [index, { key, value, untilMs, rateLimit, descriptors }] of rules.entries()) {
    if (index % rulesAtOnce === rulesAtOnce - 1) yield;
    const end = untilMs !== undefined && (endMs === undefined || untilMs < endMs) ? untilMs : endMs;
    const chain = [...above, toCompositeKey(key, value)];
    if (end !== undefined && rateLimit?.unlimited) ends.set(JSON.stringify(chain), end);
    if (descriptors.length > 0) yield* addingLifts(ends, descriptors, chain, end);
  }
}
