// `/top`: the most limited values, and the counts of the rules, from all reporting workers.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { findDocumentsAt, toTimeText } from '../../../../shared/rules/rule-end.ts';
import { orNull } from '../../api-shape.ts';
import { fromText, type LimitedList, LimitedSum, toText } from '../../fleet/limited-values.ts';
import type { RuleRate } from '../../fleet/rule-rates.ts';
import type { AdminApi } from '../admin-api.ts';
import { AdminController } from '../admin-controller.ts';
import {
  askingPeer,
  missingJson,
  type PeerAnswers,
  round,
  roundFields,
  sumFields,
} from '../joined.ts';
import { creatingFindLift, type FindLift } from '../lifted.ts';
import { createIsOfDomain, findingRuleOwners, type RuleOwners } from '../rule-owners.ts';

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

/** How many values each control plane lists, so that sums over several are accurate enough. */
const mostOfEach = 200;

export class Default extends AdminController {
  static readonly GET = op({
    summary: 'The values that are limited most, and the rules with the most hits over limit',
    description:
      'Of the last one or two minutes. Counts have bounds: each worker keeps 1,000 values.',
    query: Type.Object({
      domain: Type.Optional(Type.String({ maxLength: 1024, description: 'Of this domain alone' })),
      search: Type.Optional(
        Type.String({ maxLength: 200, description: 'Part of a domain, a rule or a value' }),
      ),
      limit: Type.Integer({
        default: 20,
        minimum: 1,
        maximum: mostOfEach,
        description: 'How many of each',
      }),
      peer: askingPeer,
    }),
    returns: { 200: topJson },
    failures: { 409: undefined },
  });

  GET({ peer, ...wanted }: Fields<typeof Default.GET>) {
    const answers = this.askPeers(toTopPath(wanted), topJson, peer);
    return readTop(this.api, wanted, answers);
  }
}

type Rates = Omit<RuleRate, 'rule'>;
type TopRate = TopJson['rules'][number];
/** Includes the counts of the list's limits, by window. */
type RateOfRule = TopRate & { readonly ofLimits: ReadonlyMap<string, Rates> };

/** What one control plane reports. `rates`: by metric key, or already by rule. */
export interface TopFacts {
  readonly workers: number;
  readonly limited: LimitedList;
  readonly rates: readonly (RuleRate & Pick<Partial<TopRate>, 'shadowMode' | 'limits'>)[];
}

interface WantedTop {
  readonly domain?: string | undefined;
  /** Part of the name of a domain, a rule or a value. */
  readonly search?: string | undefined;
  /** The number of values and of rules. */
  readonly limit: number;
}

/** The path of the query to peers. */
export function toTopPath({ domain, search }: WantedTop): string {
  const query = new URLSearchParams({
    limit: `${mostOfEach}`,
    ...(domain !== undefined && { domain }),
    ...(search !== undefined && { search }),
  });
  return `/top?${query}`;
}

export async function readTop(
  { fleet, peers, snapshots, clock }: AdminApi,
  { domain, search, limit }: WantedTop,
  answers: Promise<PeerAnswers<TopJson>>,
): Promise<TopJson> {
  const sought = search?.toLowerCase() ?? '';
  const isOfDomain =
    domain === undefined ? () => true : createIsOfDomain(domain, snapshots.documents);
  const current = await runInSlices(findDocumentsAt(snapshots.documents, clock.wallMs()));
  const owners = await runInSlices(findingRuleOwners(current));
  const nameOf = ({ rule }: RuleRate) => owners.nameOf(rule);
  const rates = fleet.rules().filter(({ rule }) => isOfDomain(rule));
  // Matches the rule's name, or a value in a metric key; each rule is listed with everything that it counts.
  const asked = new Set(
    rates
      .filter((rate) =>
        [rate.rule, nameOf(rate)].some((name) => name.toLowerCase().includes(sought)),
      )
      .map(nameOf),
  );
  const own: TopFacts = {
    workers: fleet.list().filter(({ figures }) => figures !== undefined).length,
    limited: await fleet.limited({ domain, search }, peers === undefined ? limit : mostOfEach),
    rates: rates.filter((rate) => asked.has(nameOf(rate))),
  };
  const findLift = await runInSlices(creatingFindLift(snapshots.documents, clock.wallMs()));
  const { values, missing } = await answers;
  return { ...toTop([own, ...values.map(toFacts)], owners, findLift, limit), missing };
}

export function toFacts({ workers, values, unlistedAtMost, rules }: TopJson): TopFacts {
  const listed = values.map((value) => ({ ...value, text: toText(value) }));
  return { workers, limited: { values: listed, unlistedAtMost }, rates: rules };
}

/** The sums over all control planes; each rule is listed once, with the sum over its metric keys. */
export function toTop(
  all: readonly TopFacts[],
  owners: RuleOwners,
  findLift: FindLift,
  most: number,
): Omit<TopJson, 'missing'> {
  const sum = new LimitedSum();
  for (const { limited } of all) {
    const values = limited.values.map((value) => {
      const { rule, ...descriptor } = fromText(value.text);
      const text = toText({ ...descriptor, rule: owners.nameOf(rule) });
      return { ...value, text };
    });
    sum.add({ ...limited, values });
  }
  const { values, unlistedAtMost } = sum.read(most);
  const rules = underRules(
    all.flatMap(({ rates }) => rates),
    owners,
  );
  return {
    ...sumFields(all, ['workers']),
    values: values.map(({ text, ...value }) => {
      const { domain, rule, entries } = fromText(text);
      const untilMs = findLift(domain, entries);
      return {
        ...{ domain, rule, entries: [...entries], ...value, perSecond: round(value.perSecond) },
        perSecondBefore: value.perSecondBefore === null ? null : round(value.perSecondBefore),
        ...(untilMs !== undefined && { liftedUntil: toTimeText(untilMs) }),
      };
    }),
    unlistedAtMost,
    rules: rules.toSorted(byOverLimit).slice(0, most).map(toRounded),
  };
}

function underRules(rates: TopFacts['rates'], owners: RuleOwners): TopRate[] {
  const rules = new Map<string, RateOfRule>();
  for (const { rule: metricKey, shadowMode = false, limits = [], ...rate } of rates) {
    const rule = owners.nameOf(metricKey);
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
      shadowMode:
        known.shadowMode ||
        shadowMode ||
        owners.find(metricKey)?.located.descriptor.shadowMode === true,
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
