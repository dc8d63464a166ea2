// Descriptors that matched no rule, in the format of the admin API. Pure.
import Type from 'typebox';
import { explainingNoMatch } from '../../../shared/rules/lookup/nearest-rule.ts';
import { type PlacedRule, toPlaceText } from '../../../shared/rules/lookup/placed-rule.ts';
import type { UnmatchedSample } from '../fleet/unmatched-samples.ts';
import { orNull } from '../or-null.ts';
import { joinBy, sumFields } from './joined.ts';
import { toTime } from './revision-json.ts';

const sampleJson = Type.Object(
  {
    domain: Type.String(),
    entries: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
    samples: Type.Integer({ description: 'How many samples were the same' }),
    lastAt: Type.String({ format: 'date-time' }),
    reason: Type.String({ description: 'Why, under the rules in force' }),
    hint: orNull(Type.String()),
    nearest: orNull(
      Type.String({ description: 'file:line:column of the rule that comes nearest' }),
    ),
  },
  { title: 'Unmatched' },
);
type SampleJson = Type.Static<typeof sampleJson>;

export const unmatchedJson = Type.Object({ samples: Type.Array(sampleJson) });
export type UnmatchedJson = Type.Static<typeof unmatchedJson>;

const maxShown = 50;
type Placed = ReadonlyMap<string, readonly PlacedRule[]>;
/** Finding the nearest rule is expensive: each sample is explained once under the same rules. */
const explained = new WeakMap<Placed, Map<string, Explanation>>();
type Explanation = Pick<SampleJson, 'reason' | 'hint' | 'nearest'>;

/** Explains the first of the given samples, in order. Yields after each one. */
export function* explainSamples(
  samples: readonly UnmatchedSample[],
  placed: Placed,
): Generator<void, UnmatchedJson> {
  const before = explained.get(placed);
  const now = new Map<string, Explanation>();
  const shown: SampleJson[] = [];
  for (const { lastMs, ...sample } of samples.slice(0, maxShown)) {
    const text = JSON.stringify([sample.domain, sample.entries]);
    const explanation = before?.get(text) ?? (yield* explain(sample, placed));
    now.set(text, explanation);
    const entries = sample.entries.map((entry) => ({ ...entry }));
    shown.push({ ...sample, entries, lastAt: toTime(lastMs), ...explanation });
    yield;
  }
  explained.set(placed, now);
  return { samples: shown };
}

/** Merges the samples of several control planes: each descriptor once, the most recent first; if there are too many, an
 * equal number from each control plane. */
export function mergeUnmatched(all: readonly UnmatchedJson[]): UnmatchedJson {
  const most = Math.max(...all.map(({ samples }) => samples.length));
  const inTurn = Array.from({ length: most }, (_, turn) =>
    all.flatMap(({ samples }) => samples[turn] ?? []),
  );
  const byLast = (a: SampleJson, b: SampleJson) => b.lastAt.localeCompare(a.lastAt);
  const samples = joinBy(
    inTurn.flat(),
    ({ domain, entries }) => JSON.stringify([domain, entries]),
    (same) => {
      const [newest = same[0]] = same.toSorted(byLast);
      return { ...newest, ...sumFields(same, ['samples']) };
    },
  );
  return { samples: samples.slice(0, maxShown).sort(byLast) };
}

function* explain(
  { domain, entries }: Pick<UnmatchedSample, 'domain' | 'entries'>,
  placed: Placed,
): Generator<void, Explanation> {
  const rules = placed.get(domain);
  if (rules === undefined) {
    return { reason: `there are no rules for the domain ${domain}`, hint: null, nearest: null };
  }
  const found = yield* explainingNoMatch(domain, rules, entries);
  if (found === undefined) {
    return { reason: 'the rules in force now have one for it', hint: null, nearest: null };
  }
  const { reason, hint, nearest } = found;
  return { reason, hint: hint ?? null, nearest: nearest ? toPlaceText(nearest.rule) : null };
}
