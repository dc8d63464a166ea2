// The traffic of the last minutes as the admin API shows it. Pure.
import Type from 'typebox';
import type { RuleSeries } from '../fleet/rule-rates.ts';
import type { TrafficSlot } from '../fleet/traffic-history.ts';
import { toTime } from './revision-json.ts';
import { round } from './traffic-json.ts';

const slotJson = Type.Object({
  at: Type.String({ format: 'date-time' }),
  decisions: Type.Number(),
  overLimit: Type.Number({ description: 'Requests that were answered OVER_LIMIT' }),
  errors: Type.Number({ description: 'Requests that could not be decided' }),
});

/** Counts of slots of five seconds, the oldest first; a report counts for the time that it covers. */
export const historyJson = Type.Object({ slots: Type.Array(slotJson) }, { title: 'History' });
export type HistoryJson = Type.Static<typeof historyJson>;

const perSecond = Type.Array(Type.Number(), { maxItems: 60 });
/** Rules without hits in the last minute are left out. */
export const ruleSeriesJson = Type.Object(
  {
    rules: Type.Array(
      Type.Object({
        rule: Type.String({
          description:
            'Its name as `GET /rules` has it; the metric key where no rule in force counts so',
        }),
        hits: perSecond,
        overLimit: perSecond,
        nearLimit: perSecond,
      }),
    ),
  },
  { title: 'RuleSeries' },
);

export function toHistoryJson(slots: readonly TrafficSlot[]): HistoryJson {
  return {
    slots: slots.map(({ atMs, decisions, overLimit, errors }) => ({
      at: toTime(atMs),
      decisions: round(decisions),
      overLimit: round(overLimit),
      errors: round(errors),
    })),
  };
}

/** The sum of what several control planes say. */
export function mergeHistories(all: readonly HistoryJson[]): HistoryJson {
  const byTime = new Map<string, HistoryJson['slots'][number]>();
  for (const slot of all.flatMap(({ slots }) => slots)) {
    const { at, decisions, overLimit, errors } = slot;
    const known = byTime.get(at) ?? { at, decisions: 0, overLimit: 0, errors: 0 };
    byTime.set(at, {
      at,
      decisions: known.decisions + decisions,
      overLimit: known.overLimit + overLimit,
      errors: known.errors + errors,
    });
  }
  return { slots: [...byTime.values()].sort((a, b) => (a.at < b.at ? -1 : 1)) };
}

/** Sums by rule. */
export function mergeSeries(all: readonly RuleSeries[]) {
  const byRule = new Map<string, RuleSeries>();
  for (const series of all) {
    const known = byRule.get(series.rule);
    byRule.set(
      series.rule,
      known === undefined
        ? series
        : {
            rule: series.rule,
            hits: addEach(known.hits, series.hits),
            overLimit: addEach(known.overLimit, series.overLimit),
            nearLimit: addEach(known.nearLimit, series.nearLimit),
          },
    );
  }
  return [...byRule.values()].map(({ rule, hits, overLimit, nearLimit }) => ({
    rule,
    hits: hits.map(round),
    overLimit: overLimit.map(round),
    nearLimit: nearLimit.map(round),
  }));
}

function addEach(a: readonly number[], b: readonly number[]): number[] {
  return a.map((value, index) => value + (b[index] ?? 0));
}
