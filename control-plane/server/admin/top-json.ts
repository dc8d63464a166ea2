// The limited values in the format of the admin API: the most limited ones, and the counts of the rules. Pure.
import Type from 'typebox';
import { toTimeText } from '../../../shared/rules/rule-end.ts';
import {
  fromText,
  type LimitedList,
  LimitedSum,
  type LimitedText,
  toText,
} from '../fleet/limited-values.ts';
import type { RuleRate } from '../fleet/rule-rates.ts';
import { orNull } from '../or-null.ts';
import type { PeerAnswer } from '../record/peers/peers.ts';
import { round, roundFields, sumFields } from './joined.ts';
import type { FindLift } from './lifted.ts';
import { missingJson, toMissing } from './peer-json.ts';
import { isInShadowMode, type RuleOwners } from './rule-owners.ts';

const limitedValueJson = Type.Object(
  {
    domain: Type.String(),
    rule: Type.String({
      description:
        'The rule, or the metric key that no rule in force has; empty where it has values that are not reported',
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

const rateFields = {
  hitsPerSecond: Type.Number(),
  overLimitPerSecond: Type.Number(),
  nearLimitPerSecond: Type.Number(),
};

const ruleRateJson = Type.Object(
  {
    rule: Type.String({
      description: 'The rule, or the metric key that no rule in force has',
    }),
    ...rateFields,
    shadowMode: Type.Boolean({ description: 'It refuses nothing: its rule is in shadow mode' }),
    limits: Type.Optional(
      Type.Array(
        Type.Object({
          limit: Type.String({ description: 'Its window, such as minute' }),
          ...rateFields,
        }),
        {
          description:
            'Of a rule with a list of limits: what each of them counts of the same hits, the one with the most hits over limit first',
        },
      ),
    ),
  },
  { title: 'RuleRate' },
);

export const topJson = Type.Object(
  {
    workers: Type.Integer({ description: 'Those that report' }),
    /** Values of the last one or two minutes, the most limited first. */
    values: Type.Array(limitedValueJson),
    unlistedAtMost: Type.Number({
      description: 'No value that is not listed was limited more often',
    }),
    /** Rules of the last minute, those with the most hits over limit first. */
    rules: Type.Array(ruleRateJson),
    /** Peers that did not answer: values limited by their workers are not included. */
    missing: missingJson,
  },
  { title: 'Top' },
);
export type TopJson = Type.Static<typeof topJson>;

type Rates = Omit<RuleRate, 'rule'>;
type TopRate = TopJson['rules'][number];
/** Includes the counts of the list's limits, by window. */
type RateOfRule = TopRate & { readonly ofLimits: ReadonlyMap<string, Rates> };

/** `rates`: by metric key, or already by rule; each rule is listed once, with the sum over its metric keys. */
export function toTopJson(
  limited: LimitedList,
  rates: readonly (RuleRate & Pick<Partial<TopRate>, 'shadowMode' | 'limits'>)[],
  owners: RuleOwners,
  workers: number,
  most: number,
): TopJson {
  const sum = new LimitedSum();
  const values = limited.values.map((value) => ({ ...value, text: underRule(value.text, owners) }));
  sum.add({ ...limited, values });
  const named = sum.read(most);
  return {
    workers,
    values: named.values.map(({ text, ...value }) => ({
      ...toDescriptor(text),
      ...value,
      perSecond: round(value.perSecond),
      perSecondBefore: value.perSecondBefore === undefined ? null : round(value.perSecondBefore),
    })),
    unlistedAtMost: named.unlistedAtMost,
    rules: underRules(rates, owners).toSorted(byOverLimit).slice(0, most).map(toRounded),
    missing: [],
  };
}

/** Merges the lists of all control planes. */
export function mergeTop(
  own: TopJson,
  peers: readonly PeerAnswer<TopJson>[],
  owners: RuleOwners,
  most: number,
): TopJson {
  const known = [own, ...peers.flatMap(({ value }) => value ?? [])];
  const sum = new LimitedSum();
  for (const top of known) {
    const values = top.values.map((value) => ({
      ...value,
      text: toText(value),
      perSecondBefore: value.perSecondBefore ?? undefined,
    }));
    sum.add({ values, unlistedAtMost: top.unlistedAtMost });
  }
  const workers = known.reduce((total, top) => total + top.workers, 0);
  const rates = known.flatMap(({ rules }) => rules);
  return {
    ...toTopJson(sum.read(most), rates, owners, workers, most),
    missing: toMissing(peers),
  };
}

/** Adds the lifts of the rules in force, which are the same for all control planes. */
export function withLifts(top: TopJson, findLift: FindLift): TopJson {
  const values = top.values.map((value) => {
    const untilMs = findLift(value.domain, value.entries);
    return untilMs === undefined ? value : { ...value, liftedUntil: toTimeText(untilMs) };
  });
  return { ...top, values };
}

function underRule(text: LimitedText, owners: RuleOwners): LimitedText {
  const { rule, ...value } = fromText(text);
  return toText({ ...value, rule: owners.find(rule)?.rule ?? rule });
}

function underRules(rates: Parameters<typeof toTopJson>[1], owners: RuleOwners): TopRate[] {
  const rules = new Map<string, RateOfRule>();
  for (const { rule: metricKey, shadowMode = false, limits = [], ...rate } of rates) {
    const row = owners.find(metricKey);
    const rule = row?.rule ?? metricKey;
    const limit = owners.limitOf(metricKey);
    const known = rules.get(rule) ?? { rule, ...noRates, shadowMode: false, ofLimits: new Map() };
    const ofLimits = new Map(known.ofLimits);
    for (const each of limit === undefined ? limits : [{ limit, ...rate }]) {
      ofLimits.set(each.limit, sumFields([ofLimits.get(each.limit) ?? {}, each], rateNames));
    }
    rules.set(rule, {
      rule,
      ...sumFields([known, limit === undefined ? rate : {}], rateNames),
      // According to the rules in force on either control plane.
      shadowMode: known.shadowMode || shadowMode || isInShadowMode(row),
      ofLimits,
    });
  }
  return [...rules.values()].map(({ ofLimits, ...rate }) =>
    ofLimits.size === 0
      ? rate
      : { ...rate, limits: [...ofLimits].map(([limit, rates]) => ({ limit, ...rates })) },
  );
}

const rateNames = ['hitsPerSecond', 'overLimitPerSecond', 'nearLimitPerSecond'] as const;
const noRates: Rates = sumFields([], rateNames);

function byOverLimit(a: Rates, b: Rates): number {
  return b.overLimitPerSecond - a.overLimitPerSecond || b.hitsPerSecond - a.hitsPerSecond;
}

function toRounded({ rule, shadowMode, limits, ...rates }: TopRate): TopRate {
  return {
    rule,
    ...roundFields(rates),
    shadowMode,
    ...(limits && {
      limits: limits
        .toSorted(byOverLimit)
        .map(({ limit, ...ofLimit }) => ({ limit, ...roundFields(ofLimit) })),
    }),
  };
}

function toDescriptor(text: string) {
  const { domain, rule, entries } = fromText(text);
  return { domain, rule, entries: entries.map((entry) => ({ ...entry })) };
}
