// What callers get now instead of the answers of the rules, and since when: for the console, `status`, the chart of the
// last hour and the activity, with the same texts. Each control plane collects the facts about its workers; the
// sentences are made from the facts of all. Pure.
import Type from 'typebox';
import { toCountText } from '../../../shared/count-text.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import { orNull, time } from '../api-shape.ts';
import type { LinkedWorker } from '../fleet/fleet.ts';
import type { AgreementsJson, UnenforcedJson } from './differing-workers.ts';
import type { WorkerJson } from './fleet-json.ts';
import { joinBy, sumFields } from './joined.ts';

/** A fact about some workers of one control plane; `detail` distinguishes facts of the same kind. */
const noticeFact = Type.Object({
  kind: Type.Union([
    Type.Literal('store_unreachable'),
    Type.Literal('store_partly_unreachable'),
    Type.Literal('store_failing'),
    Type.Literal('errors'),
    Type.Literal('shadow_mode'),
    Type.Literal('no_rules'),
    Type.Literal('other_rules'),
    Type.Literal('rules_from_elsewhere'),
    Type.Literal('clock_offset'),
    Type.Literal('counting_alone'),
  ]),
  /** The failure mode of a store; otherwise ''. */
  detail: Type.String(),
  workers: Type.Integer(),
  /** Some of the workers. */
  names: Type.Array(Type.String()),
  since: orNull(time),
});
export type NoticeFact = Type.Static<typeof noticeFact>;
export const noticeFacts = Type.Array(noticeFact);

export const noticeJson = Type.Object(
  {
    kind: Type.String({ description: 'Such as `store_unreachable`; more may be added' }),
    tone: Type.Union([Type.Literal('bad'), Type.Literal('wait')], {
      description: '`bad`: callers get something else than the rules ask for',
    }),
    title: Type.String({ description: 'The condition, such as `Store unreachable`' }),
    since: orNull(time),
    effect: Type.String({ description: 'What callers get' }),
  },
  { title: 'Notice' },
);
export type NoticeJson = Type.Static<typeof noticeJson>;

export interface NoticeSources {
  readonly workers: readonly WorkerJson[];
  readonly linked: readonly LinkedWorker[];
  readonly nowMs: number;
}

/** A worker reports every five seconds, and has its rules within some seconds of its start. */
const settleMs = 12_000;
const leastClockOffsetMs = 2_000;
const storeKinds = ['store_unreachable', 'store_partly_unreachable', 'store_failing'] as const;
const mostNames = 3;
const maxNameLength = 100;

export function collectFacts({ workers, linked, nowMs }: NoticeSources): NoticeFact[] {
  const reporting = linked.flatMap((link) => {
    const { hello, figures } = link;
    return figures === undefined ? [] : [{ name: hello.nodeId, hello, figures, ...figures.store }];
  });
  const facts: NoticeFact[] = [];
  const add = (
    kind: NoticeFact['kind'],
    all: readonly { readonly name: string; readonly since?: string }[],
    detail = '',
  ) => {
    if (all.length === 0) return;
    facts.push({
      ...{ kind, detail, workers: all.length },
      names: all.slice(0, mostNames).map(({ name }) => toExcerpt(name, maxNameLength)),
      since: findFirst(all),
    });
  };
  const away = reporting.flatMap((each) =>
    each.unreachableSince === undefined ? [] : [{ ...each, since: each.unreachableSince }],
  );
  const byMode = Map.groupBy(away, ({ hello }) => hello.failureMode ?? '');
  for (const [mode, all] of byMode) {
    const kinds = Map.groupBy(all, ({ serversAway, isPartly }) => {
      if (serversAway === 0) return 'store_failing';
      return isPartly === true ? 'store_partly_unreachable' : 'store_unreachable';
    });
    for (const kind of storeKinds) add(kind, kinds.get(kind) ?? [], mode);
  }
  const isExplained = new Set(away.map(({ figures }) => figures));
  add(
    'errors',
    reporting.filter(({ figures }) => figures.errorsPerSecond > 0 && !isExplained.has(figures)),
  );
  add(
    'shadow_mode',
    reporting.filter(({ hello }) => hello.shadowMode === true),
  );
  add(
    'clock_offset',
    reporting.filter(({ clockOffsetMs }) => Math.abs(clockOffsetMs) >= leastClockOffsetMs),
  );
  const alone = reporting.filter(({ hello }) => hello.countsAlone);
  if (alone.length > 1) add('counting_alone', alone);

  add(
    'no_rules',
    workers.flatMap(({ name, acked, expected, connectedSince: since }) => {
      const isSettled = nowMs - Date.parse(since) >= settleMs;
      return acked === null && expected !== null && isSettled ? { name, since } : [];
    }),
  );
  add(
    'other_rules',
    workers.flatMap(({ name, acked, figures }) => {
      if (acked === null || figures === null || figures.version === acked.version) return [];
      const isSettled = Date.parse(figures.at) - Date.parse(acked.at) >= settleMs;
      return isSettled ? { name, since: acked.at } : [];
    }),
  );
  const instances = new Set(workers.map(({ instance }) => instance));
  add(
    'rules_from_elsewhere',
    reporting.filter(({ hello }) => !instances.has(hello.instance)),
  );
  return facts;
}

function findFirst(all: readonly { readonly since?: string | null }[]): string | null {
  return all.flatMap(({ since }) => since ?? []).sort()[0] ?? null;
}

/** Joins the facts of control planes. */
function joinFacts(all: readonly (readonly NoticeFact[])[]): NoticeFact[] {
  return joinBy(
    // Behind a balancer, a worker's link and its stream of rules may be at two control planes.
    all.flat().filter(({ kind }) => kind !== 'rules_from_elsewhere' || all.length === 1),
    ({ kind, detail }) => `${kind} ${detail}`,
    (same) => ({
      ...same[0],
      ...sumFields(same, ['workers']),
      names: same.flatMap(({ names }) => names).slice(0, mostNames),
      since: findFirst(same),
    }),
  );
}

/** Each control plane creates this notice itself. */
const clockKind = 'control_plane_clock';

export function isOfClocks({ kind }: NoticeJson): boolean {
  return kind === clockKind;
}

/** `problem`: how the clock of this control plane differs from others. */
export function toClockNotice(problem: string): NoticeJson {
  return {
    ...{ kind: clockKind, tone: 'wait', title: 'Clocks of control planes differ', since: null },
    effect: `${problem}: it makes no lifts, and its times are not theirs`,
  };
}

export interface NoticeContext {
  /** Workers that are connected, that were until lately, and that report. */
  readonly workers: {
    readonly connected: number;
    readonly gone: number;
    readonly reporting: number;
  };
  /** When the last one left; undefined if unknown. */
  readonly lastGoneAt: string | undefined;
  readonly disagreements: readonly AgreementsJson[];
  readonly unenforced: readonly UnenforcedJson[];
  /** The store of the rules. */
  readonly store: {
    readonly description: string;
    readonly reachable: boolean;
    readonly failingSince: string | null;
    readonly error: string | null;
  };
  readonly stale: { readonly reason: string; readonly since: string } | null;
  /** Notices that control planes have created themselves. */
  readonly others?: readonly NoticeJson[];
}

/** From the facts of each control plane; the worst first. */
export function toNotices(
  facts: readonly (readonly NoticeFact[])[],
  context: NoticeContext,
): NoticeJson[] {
  const { workers, lastGoneAt, disagreements, unenforced, store, stale, others = [] } = context;
  const notices = joinFacts(facts).map(
    (fact): NoticeJson => ({
      kind: fact.kind,
      since: fact.since,
      ...sentences[fact.kind]({
        ...fact,
        of: ofConnected.has(fact.kind) ? workers.connected : workers.reporting,
      }),
    }),
  );
  if (workers.connected === 0 && workers.gone > 0) {
    notices.push({
      kind: 'no_workers',
      tone: 'bad',
      title: 'No worker is connected',
      since: lastGoneAt ?? null,
      effect: `what callers get is not known: the connections of ${toCountText(workers.gone, 'worker')} broke`,
    });
  }
  if (!store.reachable) {
    notices.push({
      kind: 'rules_store_unreachable',
      tone: 'wait',
      title: `${store.description} has not been reached`,
      since: store.failingSince,
      effect: `whether there is a newer revision is not known (${store.error ?? 'no reason is known'})`,
    });
  } else if (stale?.reason === 'store_unreachable') {
    notices.push({
      kind: 'rules_of_before',
      tone: 'wait',
      title: 'Rules of an earlier start in force',
      since: stale.since,
      effect: `${store.description} has not been read yet`,
    });
  }
  notices.push(...disagreements.map(toDisagreement), ...unenforced.map(toUnenforced), ...others);
  return notices.sort((a, b) => Number(a.tone !== 'bad') - Number(b.tone !== 'bad'));
}

/** `Store unreachable since 14:03: all requests are allowed, nothing is counted`; not escaped. */
export function toNoticeText({ title, since, effect }: NoticeJson, nowMs: number): string {
  return `${title}${since === null ? '' : ` since ${toClock(since, nowMs)}`}: ${effect}`;
}

/** In the local time zone; with the date if it is not today. */
function toClock(at: string, nowMs: number): string {
  const date = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}`;
  if (date.toDateString() === new Date(nowMs).toDateString()) return clock;
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${clock}`;
}

/** The facts about what workers were sent; the others are about what they report. */
const ofConnected: ReadonlySet<string> = new Set(['no_rules', 'other_rules']);

interface Shared extends NoticeFact {
  /** The number of workers that could have it. */
  readonly of: number;
}

type Sentence = Pick<NoticeJson, 'tone' | 'title' | 'effect'>;

/** How requests are answered without the store, by KVSTORE_FAILURE_MODE. */
const failureEffects: Readonly<Record<string, string>> = {
  allow: 'requests are allowed, nothing is counted',
  deny: 'requests are refused',
  local: 'requests are counted by each worker alone, so the limits hold for each worker',
  error: "requests end in an error, and the callers decide (Envoy's failure_mode_deny)",
};
const unknownEffect = 'requests are answered by KVSTORE_FAILURE_MODE of each worker';

const sentences: Readonly<Record<NoticeFact['kind'], (fact: Shared) => Sentence>> = {
  store_unreachable: (fact) => ({
    tone: 'bad',
    title: `Store unreachable${ofWhom(fact, 'from')}`,
    effect: `all ${isOfAll(fact) ? '' : 'their '}${failureEffects[fact.detail] ?? unknownEffect}`,
  }),
  store_partly_unreachable: (fact) => ({
    tone: 'bad',
    title: `A part of the store unreachable${ofWhom(fact, 'from')}`,
    effect: `where it has the counter, ${failureEffects[fact.detail] ?? unknownEffect}`,
  }),
  store_failing: (fact) => ({
    tone: 'bad',
    title: `Requests answered without the store${ofWhom(fact, 'by')}`,
    effect: `these ${failureEffects[fact.detail] ?? unknownEffect}`,
  }),
  errors: (fact) => ({
    tone: 'bad',
    title: `Requests end in an error${ofWhom(fact, 'on')}`,
    effect: "they are not decided, and the callers decide (Envoy's failure_mode_deny)",
  }),
  shadow_mode: (fact) => ({
    tone: 'bad',
    title: `Shadow mode${isOfAll(fact) ? ' on all workers' : ofWhom(fact, 'on')}`,
    effect: `SHADOW_MODE is set, so no request ${isOfAll(fact) ? '' : 'to them '}is refused`,
  }),
  no_rules: (fact) => ({
    tone: 'bad',
    title: `No rules${isOfAll(fact) ? ' on any worker' : ofWhom(fact, 'on')}`,
    effect: `${isOfAll(fact) ? 'all' : 'their'} requests are allowed without a limit`,
  }),
  other_rules: (fact) => ({
    tone: 'bad',
    title: `Other rules in use${ofWhom(fact, 'by')}`,
    effect: 'requests are decided by other rules than the workers have acknowledged',
  }),
  rules_from_elsewhere: (fact) => ({
    tone: 'wait',
    title: `Rules from elsewhere${ofWhom(fact, 'on')}`,
    effect: 'their requests are not decided by the rules of this control plane',
  }),
  clock_offset: (fact) => ({
    tone: 'wait',
    title: `Clocks differ${ofWhom(fact, 'on')}`,
    effect: "windows begin and end earlier or later than by the store's clock",
  }),
  counting_alone: (fact) => ({
    tone: 'wait',
    title: `Counters in memory${ofWhom(fact, 'on')}`,
    effect: `each worker counts alone, so a limit lets up to ${fact.workers} times as much pass`,
  }),
};

function isOfAll({ workers, of }: Shared): boolean {
  return workers >= of;
}

/** ` on 2 of 3 workers (edge-1, edge-2)`; '' if all workers are affected. */
function ofWhom(fact: Shared, preposition: string): string {
  if (isOfAll(fact)) return '';
  const { workers, of, names } = fact;
  const more = workers > names.length ? ', ...' : '';
  return ` ${preposition} ${workers} of ${toCountText(of, 'worker')} (${names.join(', ')}${more})`;
}

/** Nodes choose their own names. */
function toDisagreement({ group, count, agreements }: AgreementsJson): NoticeJson {
  const kinds = agreements.map(({ agreement, workers, example }) => {
    const name = `${toExcerpt(example.id)} at ${example.address}`;
    return `${workers} ${workers === 1 ? 'has' : 'have'} agreement ${agreement} (${workers === 1 ? name : `one is ${name}`})`;
  });
  const rest = count - agreements.length;
  if (rest > 0) kinds.push(`there are ${rest} more`);
  const where = group === null ? '' : ` of node group '${group}'`;
  return {
    kind: 'settings_differ',
    tone: 'bad',
    title: `workers${where} count differently, because their settings differ`,
    since: null,
    effect: `${kinds.join(', ')}; /status on their debug ports lists the settings that must be equal`,
  };
}

function toUnenforced({ domain, fields, workers, example }: UnenforcedJson): NoticeJson {
  const name = `${toExcerpt(example.id)} at ${example.address}`;
  const who =
    workers === 1 ? `worker ${name} cannot` : `${workers} workers, such as ${name}, cannot`;
  const why =
    workers === 1
      ? 'it has the rules without, since it is not of Ratelane, or older'
      : 'they have the rules without, since they are not of Ratelane, or older';
  return {
    kind: 'fields_unenforced',
    tone: 'bad',
    title: `${who} enforce ${fields.join(', ')} of domain '${domain}'`,
    since: null,
    effect: why,
  };
}
