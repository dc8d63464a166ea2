// The limited values, as the admin API shows them: those that are limited most, and the counts of the rules.
// Pure.
import Type from 'typebox';
import { orNull } from '../../shared/or-null.ts';
import { toTimeText } from '../../shared/rules/rule-end.ts';
import { createLimitedSum, fromText, type LimitedList, toText } from '../fleet/limited-values.ts';
import type { RuleRate } from '../fleet/rule-rates.ts';
import type { PeerAnswer } from '../peers/peers.ts';
import type { FindLift } from './lifted.ts';
import { missingJson, toMissing } from './peer-json.ts';
import { round } from './traffic-json.ts';

const limitedValueJson = Type.Object(
  {
    domain: Type.String(),
    rule: Type.String({
      description: 'The metric key; empty where it has values that are not told',
    }),
    entries: Type.Array(Type.Object({ key: Type.String(), value: Type.String() })),
    atLeast: Type.Number({ description: 'Requests that were answered OVER_LIMIT because of it' }),
    atMost: Type.Number(),
    perSecond: Type.Number(),
    perSecondBefore: orNull(Type.Number({ description: 'In the minute before' })),
    workers: Type.Integer({ description: 'Those that list it' }),
    liftedUntil: Type.Optional(
      Type.String({ description: 'RFC 3339; of a value whose limit is lifted by now' }),
    ),
  },
  { title: 'LimitedValue' },
);

const ruleRateJson = Type.Object(
  {
    rule: Type.String({ description: 'The metric key' }),
    hitsPerSecond: Type.Number(),
    overLimitPerSecond: Type.Number(),
    nearLimitPerSecond: Type.Number(),
    shadowMode: Type.Boolean({ description: 'It refuses nothing: its rule is in shadow mode' }),
  },
  { title: 'RuleRate' },
);

export const topJson = Type.Object(
  {
    workers: Type.Integer({ description: 'Those that report' }),
    /** Of the last one or two minutes, those limited most first. */
    values: Type.Array(limitedValueJson),
    unlistedAtMost: Type.Number({
      description: 'No value that is not listed was limited more often',
    }),
    /** Of the last minute, those with the most hits over limit first. */
    rules: Type.Array(ruleRateJson),
    /** Peers that gave no answer: what their workers limit is not included. */
    missing: missingJson,
  },
  { title: 'Top' },
);
export type TopJson = Type.Static<typeof topJson>;

export interface TopRule extends RuleRate {
  readonly shadowMode: boolean;
}

export function toTopJson(
  limited: LimitedList,
  rules: readonly TopRule[],
  workers: number,
  most: number,
): TopJson {
  return {
    workers,
    values: limited.values.map(({ text, ...value }) => ({
      ...toDescriptor(text),
      ...value,
      perSecond: round(value.perSecond),
      perSecondBefore: value.perSecondBefore === undefined ? null : round(value.perSecondBefore),
    })),
    unlistedAtMost: limited.unlistedAtMost,
    rules: rules
      .toSorted(
        (a, b) => b.overLimitPerSecond - a.overLimitPerSecond || b.hitsPerSecond - a.hitsPerSecond,
      )
      .slice(0, most)
      .map((rate) => ({
        rule: rate.rule,
        hitsPerSecond: round(rate.hitsPerSecond),
        overLimitPerSecond: round(rate.overLimitPerSecond),
        nearLimitPerSecond: round(rate.nearLimitPerSecond),
        shadowMode: rate.shadowMode,
      })),
    missing: [],
  };
}

/** Merges the lists of all control planes. */
export function mergeTop(
  own: TopJson,
  peers: readonly PeerAnswer<TopJson>[],
  most: number,
): TopJson {
  const known = [own, ...peers.flatMap(({ value }) => value ?? [])];
  const sum = createLimitedSum();
  const rules = new Map<string, TopRule>();
  for (const top of known) {
    const values = top.values.map((value) => ({
      ...value,
      text: toText(value),
      perSecondBefore: value.perSecondBefore ?? undefined,
    }));
    sum.add({ values, unlistedAtMost: top.unlistedAtMost });
    for (const rate of top.rules) rules.set(rate.rule, addRates(rates(rules, rate.rule), rate));
  }
  const workers = known.reduce((total, top) => total + top.workers, 0);
  return {
    ...toTopJson(sum.read(most), [...rules.values()], workers, most),
    missing: toMissing(peers),
  };
}

/** With the lifts by the rules in force, which are the same for all control planes. */
export function withLifts(top: TopJson, findLift: FindLift): TopJson {
  const values = top.values.map((value) => {
    const untilMs = findLift(value.domain, value.entries);
    return untilMs === undefined ? value : { ...value, liftedUntil: toTimeText(untilMs) };
  });
  return { ...top, values };
}

function rates(rules: ReadonlyMap<string, TopRule>, rule: string): TopRule {
  const none = {
    shadowMode: false,
    hitsPerSecond: 0,
    overLimitPerSecond: 0,
    nearLimitPerSecond: 0,
  };
  return rules.get(rule) ?? { rule, ...none };
}

function addRates(a: TopRule, b: TopRule): TopRule {
  return {
    rule: a.rule,
    hitsPerSecond: a.hitsPerSecond + b.hitsPerSecond,
    overLimitPerSecond: a.overLimitPerSecond + b.overLimitPerSecond,
    nearLimitPerSecond: a.nearLimitPerSecond + b.nearLimitPerSecond,
    // Under the rules in force of either.
    shadowMode: a.shadowMode || b.shadowMode,
  };
}

function toDescriptor(text: string) {
  const { domain, rule, entries } = fromText(text);
  return { domain, rule, entries: entries.map((entry) => ({ ...entry })) };
}
