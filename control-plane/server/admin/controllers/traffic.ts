// `/traffic`: the decisions of the workers in the last hour, and the counts of the rules.
import Type from 'typebox';
import { runInSlices } from '../../../../shared/in-slices.ts';
import { type Fields, op } from '../../../../shared/router/index.ts';
import { orNull, time, toTime } from '../../api-shape.ts';
import type { DomainSeries, RuleSeries } from '../../fleet/rule-rates.ts';
import { slotMs } from '../../fleet/slots.ts';
import type { TrafficCounts, TrafficSlot } from '../../fleet/traffic-history.ts';
import { type Mark, markKind } from '../../history/last-hour/marks.ts';
import type { Outcomes } from '../../record/outcomes.ts';
import { toShortId } from '../../store/revision.ts';
import { AdminController } from '../admin-controller.ts';
import { askingPeer, joinBy, round, roundFields, sumFields } from '../joined.ts';
import { createIsOfDomain, findingRuleOwners, namingRules } from '../rule-owners.ts';

const slotJson = Type.Object({
  at: time,
  decisions: Type.Number(),
  overLimit: Type.Number({ description: 'Requests that were answered OVER_LIMIT' }),
  errors: Type.Number({ description: 'Requests that could not be decided' }),
});

const markJson = Type.Object(
  {
    at: time,
    /** `in_force`: all workers get a revision from now on. `rollout`: some get it. `taken_back`: those have lost it.
     * `reset`: counters were reset. `outage`: callers get answers other than those of the rules, until `recovered`. */
    kind: markKind,
    revision: orNull(Type.String()),
    text: Type.String(),
  },
  { title: 'Mark' },
);
export type MarkJson = Type.Static<typeof markJson>;

const historySpan = Type.Optional(
  Type.Union([Type.Literal('15m'), Type.Literal('1h')], {
    description: '15m, in slots of 5 seconds, or 1h, in slots of 20 seconds. Without it 15m',
  }),
);
export type HistorySpan = Exclude<Type.Static<typeof historySpan>, undefined>;

const spans: Readonly<Record<HistorySpan, { readonly ms: number; readonly slotMs: number }>> = {
  '15m': { ms: 900_000, slotMs },
  '1h': { ms: 3_600_000, slotMs: 4 * slotMs },
};

const historyJson = Type.Object(
  {
    until: Type.String({ format: 'date-time', description: 'Now, for the control plane' }),
    slotSeconds: Type.Integer(),
    /** The oldest first; a report counts for the time that it covers. Omits slots that no report covers, and those that
     * reports may still add to. */
    slots: Type.Array(slotJson),
    /** The events of that time, the oldest first. */
    marks: Type.Array(markJson),
  },
  { title: 'History' },
);
export type HistoryJson = Type.Static<typeof historyJson>;

/** How long control planes take to follow each other: by default, the time between two polls of Git. */
const followMs = 30_000;

const perSecond = Type.Array(Type.Number(), { maxItems: 60 });
/** Omits rules without hits in the last minute. */
const ruleSeriesJson = Type.Object(
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
    until: Type.Optional(
      Type.String({ format: 'date-time', description: 'The end of the newest slot' }),
    ),
    known: Type.Optional(
      Type.Array(Type.Boolean(), {
        maxItems: 60,
        description:
          'Of each slot of the span, the oldest first: whether reports cover it. Of the others nothing is known. The series of a rule end with the same slot',
      }),
    ),
  },
  { title: 'RuleSeries' },
);

export type RuleSeriesJson = Type.Static<typeof ruleSeriesJson>;

const counts = ['decisions', 'overLimit', 'errors'] as const satisfies (keyof TrafficCounts)[];

export class Default extends AdminController {
  static readonly GET = op({
    summary:
      'What all workers decided in the last 15 minutes or the last hour, without the time that no report covers, and what happened in that time',
    query: Type.Object({ span: historySpan, peer: askingPeer }),
    returns: { 200: historyJson },
    failures: { 409: undefined },
  });

  async GET({ span = '15m', peer }: Fields<typeof Default.GET>) {
    const { values } = await this.askPeers(`/traffic?span=${span}`, historyJson, peer);
    const { fleet, marks, clock } = this.api;
    const { outcomes } = this.api.rollout.memory();
    const known = { slots: fleet.history(), marks: withOutcomes(marks.read(), outcomes) };
    return toHistory(known, values, span, clock.wallMs());
  }

  static readonly GET_rules = op({
    summary:
      'Hits per second of the rules of a domain in each slot of five seconds of the last minute, or of a minute of the last quarter of an hour',
    query: Type.Object({
      domain: Type.String({ minLength: 1, maxLength: 1024 }),
      span: Type.Union([Type.Literal('minute'), Type.Literal('quarter')], { default: 'minute' }),
      peer: askingPeer,
    }),
    returns: { 200: ruleSeriesJson },
    failures: { 409: undefined },
  });

  async GET_rules({ domain, span, peer }: Fields<typeof Default.GET_rules>) {
    const path = `/traffic/rules?domain=${encodeURIComponent(domain)}&span=${span}`;
    const { values } = await this.askPeers(path, ruleSeriesJson, peer);
    const own = this.api.fleet.ruleSeries(domain, span);
    const known = [own, ...values].flatMap(({ rules }) => rules);
    const { documents } = this.api.snapshots;
    const isOfDomain = createIsOfDomain(domain, documents);
    const series = known.filter(({ rule }) => isOfDomain(rule));
    const owners = await runInSlices(findingRuleOwners(documents));
    const named = await runInSlices(namingRules(series, owners));
    return { rules: sumSeries(named), ...joinSlots(own, values) };
  }
}

/** The history of the span that ends at `nowMs`, with the slots of other control planes, up to the time that all have
 * reported: one that was asked a moment earlier has a slot less. */
export function toHistory(
  own: { readonly slots: readonly TrafficSlot[]; readonly marks: readonly Mark[] },
  others: readonly HistoryJson[],
  span: HistorySpan,
  nowMs: number,
): HistoryJson {
  const { ms, slotMs: shownMs } = spans[span];
  const byTime = Map.groupBy(own.slots, ({ atMs }) => Math.floor(atMs / shownMs) * shownMs);
  const slots = [...byTime]
    .filter(([atMs, parts]) => atMs >= nowMs - ms && parts.length === shownMs / slotMs)
    .map(([atMs, parts]) => ({ at: toTime(atMs), ...roundFields(sumFields(parts, counts)) }));
  const marks = own.marks
    .filter(({ atMs }) => atMs >= nowMs - ms)
    .map(({ atMs, kind, revision = null, text }) => ({ at: toTime(atMs), kind, revision, text }));
  const all = [{ slots, marks }, ...others];
  const ends = all.flatMap((each) => each.slots.at(-1) ?? []).map(({ at }) => Date.parse(at));
  const endMs = Math.max(Math.min(...ends), Math.max(...ends) - shownMs);
  const joined = joinBy(
    all.flatMap((each) => each.slots).filter(({ at }) => Date.parse(at) <= endMs),
    ({ at }) => at,
    (same) => ({ at: same[0].at, ...sumFields(same, counts) }),
  );
  return {
    until: toTime(nowMs),
    slotSeconds: shownMs / 1000,
    slots: joined.sort((a, b) => (a.at < b.at ? -1 : 1)),
    marks: joinMarks(all.flatMap((each) => each.marks)),
  };
}

/** Adds revisions that no worker received, which only the record has; marks of taken-back revisions get the reason, if
 * it is on record. */
export function withOutcomes(marks: readonly Mark[], outcomes: Outcomes): readonly Mark[] {
  const refused = outcomes.flatMap(({ kind, atMs, reason, revisions: [revision = ''] }) => {
    if (kind !== 'invalid' && kind !== 'held_back') return [];
    const what = kind === 'invalid' ? 'invalid' : 'held back';
    const why = reason === '' ? '' : `: ${reason}`;
    return { atMs, kind, revision, text: `Revision ${toShortId(revision)} is ${what}${why}` };
  });
  return [...withReasons(marks, outcomes), ...refused].sort((a, b) => a.atMs - b.atMs);
}

function withReasons(marks: readonly Mark[], outcomes: Outcomes): readonly Mark[] {
  return marks.map((mark) => {
    const { kind, revision = '', text } = mark;
    if (kind !== 'taken_back' || !text.endsWith(bare)) return mark;
    const isOfMark = (each: Outcomes[number]) =>
      each.kind === 'taken_back' && each.revisions.includes(revision);
    const { reason = '', by = '' } = outcomes.find(isOfMark) ?? {};
    const who = by === '' ? '' : ` by ${by}`;
    return { ...mark, text: `${text}${who}${reason === '' ? '' : `: ${reason}`}` };
  });
}

/** The end of a mark without a reason. */
const bare = 'is taken back';

/** Control planes follow each other: an outcome of a revision is marked at the time of the first one that reports it. */
function joinMarks(all: readonly MarkJson[]): MarkJson[] {
  const joined: MarkJson[] = [];
  for (const mark of all.toSorted((a, b) => (a.at < b.at ? -1 : 1))) {
    const isSame = ({ kind, revision, at, text }: MarkJson) =>
      kind === mark.kind &&
      revision === mark.revision &&
      (revision !== null || text === mark.text) &&
      Date.parse(mark.at) - Date.parse(at) <= followMs;
    if (!joined.some(isSame)) joined.push(mark);
  }
  return joined;
}

/** The slots known to any of the control planes; one that was asked a moment later has other slots. */
function joinSlots(
  { until, known }: DomainSeries,
  others: readonly RuleSeriesJson[],
): Pick<RuleSeriesJson, 'until' | 'known'> {
  const same = others.filter((each) => each.until === until);
  const isKnown = (index: number) => same.some((each) => each.known?.[index] === true);
  return { until, known: known.map((is, index) => is || isKnown(index)) };
}

/** Sums the series by rule. */
export function sumSeries(all: readonly RuleSeries[]) {
  return joinBy(
    all,
    ({ rule }) => rule,
    (same) => {
      const sum = (field: 'hits' | 'overLimit' | 'nearLimit') =>
        same
          .map((series) => series[field])
          .reduce(addEach)
          .map(round);
      return {
        rule: same[0].rule,
        hits: sum('hits'),
        overLimit: sum('overLimit'),
        nearLimit: sum('nearLimit'),
      };
    },
  );
}

/** Aligned at the end, which is the same time: a recently started control plane has fewer values. */
function addEach(a: readonly number[], b: readonly number[]): number[] {
  const length = Math.max(a.length, b.length);
  return Array.from(
    { length },
    (_, index) => (a[index - length + a.length] ?? 0) + (b[index - length + b.length] ?? 0),
  );
}
