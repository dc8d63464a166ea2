// The workers of all control planes as a rollout sees them at one look: who has the revision, and what they have
// counted since the step began. Pure: each look makes the memory for the next one.
import { toCountText } from '../../../shared/count-text.ts';
import { formatDuration } from '../../../shared/duration.ts';
import { toExcerpt } from '../../../shared/text-excerpt.ts';
import type { RolloutOnRecord } from '../record/record.ts';
import {
  type FiguresFacts,
  type GoneFacts,
  type KnownWorker,
  type OwnFacts,
  type PeerFacts,
  subtract,
  toGoneKey,
  type WorkerFacts,
} from './facts.ts';
import { type CountedWorker, type Figures, type Judgement, judgeAll } from './judgement.ts';
import { createIsWithin, isGiven, isOfStep, type Pools, positionOf } from './pools.ts';
import { type Gone, type Member, reportedMs, type Seen } from './view.ts';

export interface Observation {
  /** The rollout of the revision on trial; undefined until it is on record. */
  readonly open: RolloutOnRecord | undefined;
  readonly pools: Pools;
  readonly overLimitPoints: number;
  readonly own: OwnFacts;
  readonly peers: PeerFacts;
  /** Whether there are peers that this control plane does not ask. */
  readonly hasOthers: boolean;
}

/** What one look knows of earlier looks. Times are of the monotonic clock or of the time watched, which leaves out the
 * time for which the process was stopped. */
export interface WatchMemory {
  /** Since when workers may be connecting: to a control plane that has started, or to one that has taken over as
   * leader. */
  readonly gatherSinceMs: number;
  /** `isOfAll`: whether workers of peers are included, which only a leader knows. */
  readonly connected: {
    readonly count: number;
    readonly isOfAll: boolean;
    readonly sinceMs: number;
  };
  readonly lastMs: number;
  readonly watchedMs: number;
  readonly step: Step;
  /** When a worker that was given the revision in this step was last connected, in time watched. */
  readonly chosenSeenMs: number;
  /** The keys of the connected workers that have reported, even if they do not any more. */
  readonly reporting: ReadonlySet<string>;
}

/** Values by the key of a worker. */
type ByKey<Value> = ReadonlyMap<string, Value>;

/** The counts of a worker when it was first seen in the step. */
interface Base {
  readonly series: string;
  readonly figures: FiguresFacts;
  /** The figures before the step, without the revision. */
  readonly before: Figures | undefined;
}

/** A step of one rollout. */
interface Step {
  readonly key: string;
  readonly sinceMs: number;
  readonly heldMs: number;
  readonly isHeldByAll: boolean;
  readonly isPaused: boolean;
  readonly bases: ByKey<Base>;
  /** The newest slice of the step, which began at this time watched. `number`: its index among slices of ten seconds,
   * counted from the end of the hold. */
  readonly slice: {
    readonly sinceMs: number;
    readonly number: number;
    readonly bases: ByKey<Base>;
  };
  /** The workers that do not have what they are given: whether each refuses it, and since when, in time watched. */
  readonly waiting: ByKey<{ readonly refuses: boolean; readonly sinceMs: number }>;
  /** Workers that were missing at one control plane and have connected to another one: since when each was missing. */
  readonly cameBack: ByKey<number>;
}

/** After a start of a control plane the workers connect one by one: a share of the first few would not be
 * representative. Workers of a share that leave together may take as long to reconnect. */
const gatherMs = 30_000;
const gatherQuietMs = 5_000;
/** The longest time between two looks that counts as watched: a process that was stopped has not watched. */
const longestGapMs = 2_000;
/** A broken connection is no evidence yet: most workers reconnect within this time. */
const comesBackMs = 3_000;
/** How much later the same moment may appear in another answer of a peer. */
const answerMs = 2_000;
/** The end of a hold counts as much as its beginning: each slice of this length is also judged by itself, and the last
 * slice ends with the hold. */
const sliceMs = 10_000;

export function startWatch(nowMs: number): WatchMemory {
  return {
    gatherSinceMs: nowMs,
    connected: { count: 0, isOfAll: false, sinceMs: nowMs },
    lastMs: nowMs,
    watchedMs: 0,
    step: startStep('', nowMs, 0),
    chosenSeenMs: 0,
    reporting: new Set(),
  };
}

function startStep(key: string, nowMs: number, watchedMs: number): Step {
  return {
    ...{ key, sinceMs: nowMs, heldMs: 0, isHeldByAll: false, isPaused: false },
    bases: new Map(),
    slice: { sinceMs: watchedMs, number: Number.NEGATIVE_INFINITY, bases: new Map() },
    waiting: new Map(),
    cameBack: new Map(),
  };
}

/** Counts the connected workers, which is all that matters without a rollout. */
export function watchCount(
  memory: WatchMemory,
  count: number,
  nowMs: number,
  isOfAll = false,
): WatchMemory {
  const before = memory.connected;
  const isNews = isOfAll === before.isOfAll && count !== before.count;
  return { ...memory, connected: { count, isOfAll, sinceMs: isNews ? nowMs : before.sinceMs } };
}

/** Waits for workers again: until now another control plane led, and its workers may be about to connect to this
 * one. */
export function gatherAgain(memory: WatchMemory, nowMs: number): WatchMemory {
  return { ...memory, gatherSinceMs: nowMs, step: { ...memory.step, heldMs: 0 } };
}

/** Whether the workers that reconnect after a start have done so, as far as can be known. */
export function isGathered({ gatherSinceMs, connected }: WatchMemory, nowMs: number): boolean {
  if (nowMs - gatherSinceMs >= gatherMs) return connected.count > 0;
  const quietSinceMs = Math.max(connected.sinceMs, gatherSinceMs);
  return connected.count > 1 && nowMs - quietSinceMs >= gatherQuietMs;
}

export function watch(
  before: WatchMemory,
  observation: Observation,
  nowMs: number,
): { readonly memory: WatchMemory; readonly seen: Seen } {
  const { open, own, peers } = observation;
  const passedMs = Math.min(nowMs - before.lastMs, longestGapMs);
  const watchedMs = before.watchedMs + passedMs;
  const stepKey = open === undefined ? '' : `${open.id} ${open.step}`;
  const isPaused = open?.outcome === 'paused';
  const fresh = startStep(stepKey, nowMs, watchedMs);
  const known = stepKey === before.step.key ? before.step : fresh;
  // An operator who resumes a rollout wants the step to be watched again.
  const isResumed = known.isPaused && !isPaused;
  const step = isResumed ? { ...known, bases: fresh.bases, slice: fresh.slice } : known;
  // A worker that moves to another control plane is connected to both for a moment.
  const all: readonly KnownWorker[] = [...peers.workers, ...own.workers];
  const byKey = new Map(all.map((each) => [each.key, each]));
  const counted = watchCount(before, byKey.size, nowMs, peers.workers.length > 0);
  const workers = [...byKey.values()].filter(({ isAffected }) => isAffected);
  const waiting = new Map(step.waiting);
  const isWithin = createIsWithin(open ?? { chosen: [], whole: [] });
  const members = workers.map((facts): Member => {
    const { key, id, instance, name, pool, state, refusal, isUnsure } = facts;
    const position = positionOf(open?.id ?? '', id, instance ?? undefined);
    const isChosen = isWithin({ pool, position });
    const isRefused = isChosen && refusal !== null;
    const isSilent = state === 'pending' && isUnsure !== true;
    const past = step.waiting.get(key);
    const isSame = past?.refuses === isRefused && (isRefused || isSilent);
    const sinceMs = isSame ? past.sinceMs : watchedMs;
    if (isRefused || isSilent) waiting.set(key, { refuses: isRefused, sinceMs });
    else waiting.delete(key);
    return {
      name,
      pool,
      position,
      isChosen,
      state,
      refusal: isRefused ? { text: refusal, forMs: watchedMs - sinceMs } : undefined,
      silentForMs: isSilent ? watchedMs - sinceMs : 0,
      isUnused: isSilent && facts.unused === true,
    };
  });
  const chosen = members.filter(({ isChosen }) => isChosen);
  const hasShare = open !== undefined && isGiven(open);
  const isThere = open !== undefined && isOfStep(observation.pools, open, chosen);
  const isUnheld = !isThere || isPaused;
  const isHeldByAll =
    !isUnheld && (step.isHeldByAll || (peers.unknown === undefined && chosen.every(isInForce)));
  const heldMs = isUnheld ? 0 : step.heldMs + (step.isHeldByAll ? passedMs : 0);
  const chosenSeenMs = isThere || !hasShare ? watchedMs : before.chosenSeenMs;
  const gone = [...own.gone, ...peers.gone];
  const cameBack = noteCameBack(step.cameBack, gone, toGoneKeys(byKey.values()), nowMs);
  const { judgement, ...figures } = judge({ ...step, heldMs }, workers, observation, watchedMs);
  const lost = workers.filter(
    ({ key, counted }, at) =>
      counted === null && before.reporting.has(key) && members[at]?.isChosen === true,
  );
  /** Forgets workers that have left once they outnumber the connected ones. */
  function retain<Value>(of: ByKey<Value>): ByKey<Value> {
    return of.size <= 2 * byKey.size ? of : new Map([...of].filter(([key]) => byKey.has(key)));
  }
  const memory: WatchMemory = {
    ...counted,
    lastMs: nowMs,
    watchedMs,
    chosenSeenMs,
    reporting: new Set(
      [...byKey.values()]
        .filter(({ key, counted }) => counted !== null || before.reporting.has(key))
        .map(({ key }) => key),
    ),
    step: {
      ...{ key: stepKey, sinceMs: step.sinceMs, heldMs, isHeldByAll, isPaused },
      bases: retain(figures.bases),
      slice: { ...figures.slice, bases: retain(figures.slice.bases) },
      waiting: retain(waiting),
      cameBack: retain(cameBack),
    },
  };
  const seen: Seen = {
    members,
    connected: byKey.size,
    peopled: new Set([...byKey.values()].map(({ pool }) => pool)),
    gone: {
      ...countGone(gone, cameBack, { nowMs, askedAtMs: peers.askedAtMs, sinceMs: step.sinceMs }),
      mayBeElsewhere: observation.hasOthers,
    },
    judgement: toUnquiet(judgement, lost),
    unknown: peers.unknown,
    isLacked: peers.lacks,
    isGathered: isGathered(memory, nowMs),
    isAwaited: hasShare && !isThere && watchedMs - chosenSeenMs < gatherMs,
    heldMs,
  };
  return { memory, seen };
}

/** A worker with the revision that has stopped reporting is not known to be quiet. */
function toUnquiet(judgement: Judgement, lost: readonly WorkerFacts[]): Judgement {
  const [first] = lost;
  if (judgement.kind !== 'silent' || first === undefined) return judgement;
  const text = `${judgement.text}; ${toCountText(lost.length, 'worker')} with it, such as ${first.name}, reported before`;
  return { ...judgement, text, isQuiet: false };
}

/** `present`: the `toGoneKey` of each worker that is connected to any control plane. */
function noteCameBack(
  before: ByKey<number>,
  gone: readonly GoneFacts[],
  present: ReadonlySet<string>,
  nowMs: number,
): ByKey<number> {
  const cameBack = new Map(before);
  for (const { key, forMs } of gone) {
    const goneAtMs = nowMs - forMs;
    if (present.has(key)) cameBack.set(key, Math.max(goneAtMs, cameBack.get(key) ?? goneAtMs));
  }
  return cameBack;
}

/** Does not count workers that have reconnected or still may, even if the control plane to which they reconnected no
 * longer answers. */
function countGone(
  gone: readonly GoneFacts[],
  cameBack: ByKey<number>,
  at: { readonly nowMs: number; readonly askedAtMs: number; readonly sinceMs: number },
): Omit<Gone, 'mayBeElsewhere'> {
  const knownUntilMs = Math.min(at.nowMs, at.askedAtMs);
  const left = new Map<string, GoneFacts>();
  for (const each of gone) {
    const { key, forMs } = each;
    const goneAtMs = at.nowMs - forMs;
    const isBack = goneAtMs <= (cameBack.get(key) ?? Number.NEGATIVE_INFINITY) + answerMs;
    const mayComeBack = knownUntilMs - goneAtMs < comesBackMs;
    if (!isBack && !mayComeBack && forMs <= at.nowMs - at.sinceMs) left.set(key, each);
  }
  const having = [...left.values()].filter(({ hadIt }) => hadIt);
  const byPool = Map.groupBy(having, ({ pool = 0 }) => pool);
  const havingOf = new Map([...byPool].map(([pool, { length }]) => [pool, length]));
  return { having: having.length, havingOf, others: left.size - having.length };
}

/** Judges the whole step, or the slice that ends now if that is worse. */
function judge(
  step: Step,
  workers: readonly WorkerFacts[],
  observation: Observation,
  watchedMs: number,
): Pick<Step, 'bases' | 'slice'> & { readonly judgement: Judgement } {
  const bases = addBases(step.bases, workers);
  const sliceBases = addBases(step.slice.bases, workers);
  const judgeFrom = (from: ByKey<Base>, hadTime: boolean) =>
    judgeSince(from, bases, workers, observation, hadTime);
  const hadTime = step.heldMs >= reportedMs;
  const lastedMs = watchedMs - step.slice.sinceMs;
  const whole = judgeFrom(bases, hadTime);
  const slice = judgeFrom(sliceBases, hadTime && lastedMs >= sliceMs);
  const holdMs = observation.pools.steps[observation.open?.step ?? 0]?.holdMs ?? 0;
  const isHolding = step.heldMs > 0;
  const number = isHolding
    ? Math.floor((step.heldMs - holdMs) / sliceMs)
    : Number.NEGATIVE_INFINITY;
  const isDue = lastedMs >= sliceMs || number !== step.slice.number;
  // An open slice lasts until it can be judged.
  const isOpen = slice.kind === 'silent' || slice.kind === 'unclear';
  const isOver = isDue && !isOpen;
  const isWorse = isOpen
    ? slice.kind !== 'silent' && whole.kind === 'good'
    : isOver && slice.kind !== 'good';
  const judgement: Judgement =
    isWorse && whole.kind !== 'bad' && whole.kind !== 'store'
      ? { ...slice, text: `in the last ${formatDuration(lastedMs)}: ${slice.text}` }
      : whole;
  const isOutage = judgement.kind === 'store';
  const { leftOut = observation.peers.leftOut } = observation.own;
  const left =
    leftOut === undefined
      ? ''
      : `; ${toCountText(leftOut.count, 'domain')}, such as '${toExcerpt(leftOut.first)}', counted in all alone`;
  const later = isOver
    ? { sinceMs: watchedMs, number, bases: addBases(new Map(), workers) }
    : { ...step.slice, bases: sliceBases };
  return {
    bases: passOutage(bases, workers, isOutage),
    slice: { ...later, bases: passOutage(later.bases, workers, isOutage) },
    judgement: { ...judgement, text: `${judgement.text}${left}` },
  };
}

/** Adds a base for each worker that is new or whose sums have restarted. */
function addBases(before: ByKey<Base>, workers: readonly WorkerFacts[]): ByKey<Base> {
  const bases = new Map(before);
  for (const { key, counted } of workers) {
    if (counted === null || bases.get(key)?.series === counted.series) continue;
    const { series, recent } = counted;
    bases.set(key, { series, figures: counted, before: recent && toFigures(recent) });
  }
  return bases;
}

/** Ignores what a worker counted while its store was unreachable; `isAll`: ignores what any worker counted then. */
function passOutage(
  bases: ByKey<Base>,
  workers: readonly WorkerFacts[],
  isAll: boolean,
): ByKey<Base> {
  const later = new Map(bases);
  for (const { key, counted } of workers) {
    const base = bases.get(key);
    if (base === undefined || counted === null) continue;
    if (isAll || counted.storeAway !== undefined) {
      later.set(key, { ...base, figures: counted });
    }
  }
  return later;
}

/** Judges the workers of each pool by what they have counted since `from`, and before `bases`, which are those of the
 * step. */
function judgeSince(
  from: ByKey<Base>,
  bases: ByKey<Base>,
  workers: readonly WorkerFacts[],
  { pools, overLimitPoints }: Observation,
  hadTime: boolean,
): Judgement {
  const sides = new Map<number, { having: CountedWorker[]; others: CountedWorker[] }>();
  for (const { key, name, pool, counted } of workers) {
    const base = from.get(key);
    if (counted === null || base === undefined) continue;
    const side = sides.get(pool) ?? { having: [], others: [] };
    sides.set(pool, side);
    const figures = toFigures(subtract(counted, base.figures));
    const before = bases.get(key)?.before;
    const { hasIt, storeAway } = counted;
    (hasIt ? side.having : side.others).push({ name, ...figures, before, storeAway });
  }
  const groups = [...sides].map(([pool, side]) => ({ name: pools.nameOf(pool), ...side }));
  return judgeAll(groups, overLimitPoints, hadTime);
}

function toFigures({
  decisions,
  overLimit,
  errors,
  noMatch = 0,
  gone = 0,
  domains = [],
}: FiguresFacts): Figures {
  const byName = new Map(domains.map(({ name, ...hits }) => [name, hits]));
  return { decisions, overLimit, errors, noMatch, gone, domains: byName };
}

function toGoneKeys(workers: Iterable<WorkerFacts>): Set<string> {
  return new Set([...workers].map(({ instance, id }) => toGoneKey(instance ?? undefined, id)));
}

function isInForce({ state }: Member): boolean {
  return state === 'in_force';
}
