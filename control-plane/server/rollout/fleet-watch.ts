// The workers of all control planes as a rollout sees them at one check: which of them have the revision, and what
// they have counted since the step began. Pure: each check makes the memory for the next one.
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

/** What one check remembers of earlier checks. Moments are of the monotonic clock, except for those named `...WatchedMs`:
 * they are values of `watchedMs`, which leaves out the time for which the process was stopped. */
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
  readonly step: WatchedStep;
  /** When a worker that was given the revision in this step was last connected. */
  readonly chosenSeenAtWatchedMs: number;
  /** The keys of the connected workers that have reported, even if they have stopped. */
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

/** `deserted`: no worker that the step added is connected. `held`: all workers of the step have had the revision. */
type WatchPhase = 'paused' | 'deserted' | 'spreading' | 'held';

interface WatchedStep {
  readonly key: string;
  readonly sinceMs: number;
  readonly phase: WatchPhase;
  /** For how long the phase has been `held`. */
  readonly heldMs: number;
  readonly bases: ByKey<Base>;
  /** The newest slice of the step. `number`: its index among the slices, counted from the end of the hold. */
  readonly slice: {
    readonly sinceWatchedMs: number;
    readonly number: number;
    readonly bases: ByKey<Base>;
  };
  /** The workers that do not have what they are given. */
  readonly waiting: ByKey<{ readonly why: 'refuses' | 'silent'; readonly sinceWatchedMs: number }>;
  /** When the last absence from one control plane began that a connection to another one has ended. */
  readonly endedAbsences: ByKey<number>;
}

/** After a start of a control plane the workers connect one by one: a share of the first few would not be
 * representative. Workers of a share that leave together may take as long to reconnect. */
const gatherMs = 30_000;
const gatherQuietMs = 5_000;
/** The longest time between two checks that counts as watched: a process that was stopped has not watched. */
const longestGapMs = 2_000;
/** A broken connection is no evidence yet: most workers reconnect within this time. */
const reconnectMs = 3_000;
/** Peers report how long a worker has been gone: by the delay of the answer, the same departure may appear later. */
const longestDelayMs = 2_000;
/** The end of a hold counts as much as its beginning: each slice of this length is also judged by itself, and the last
 * slice ends with the hold. */
const sliceMs = 10_000;
/** The number of each slice that begins before all workers of the step have the revision. */
const beforeHold = Number.NEGATIVE_INFINITY;

export function startWatch(nowMs: number): WatchMemory {
  return {
    gatherSinceMs: nowMs,
    connected: { count: 0, isOfAll: false, sinceMs: nowMs },
    lastMs: nowMs,
    watchedMs: 0,
    step: startStep('', nowMs, 0),
    chosenSeenAtWatchedMs: 0,
    reporting: new Set(),
  };
}

function startStep(key: string, nowMs: number, watchedMs: number): WatchedStep {
  return {
    ...{ key, sinceMs: nowMs, phase: 'deserted', heldMs: 0 },
    bases: new Map(),
    slice: { sinceWatchedMs: watchedMs, number: beforeHold, bases: new Map() },
    ...{ waiting: new Map(), endedAbsences: new Map() },
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
  const isResumed = known.phase === 'paused' && !isPaused;
  const step = isResumed ? { ...known, bases: fresh.bases, slice: fresh.slice } : known;
  // A worker that moves to another control plane is connected to both for a moment.
  const all: readonly KnownWorker[] = [...peers.workers, ...own.workers];
  const byKey = new Map(all.map((each) => [each.key, each]));
  const connected = [...byKey.values()];
  const counted = watchCount(before, connected.length, nowMs, peers.workers.length > 0);
  const workers = connected.filter(({ isAffected }) => isAffected);
  const waiting = new Map(step.waiting);
  const isWithin = createIsWithin(open ?? { chosen: [], whole: [] });
  const members = workers.map((facts): Member => {
    const { key, id, instance, name, pool, state, refusal, isUnsure } = facts;
    const position = positionOf(open?.id ?? '', id, instance ?? undefined);
    const isChosen = isWithin({ pool, position });
    const isRefused = isChosen && refusal !== null;
    const isSilent = state === 'pending' && isUnsure !== true;
    const why = isRefused ? 'refuses' : isSilent ? 'silent' : undefined;
    const past = step.waiting.get(key);
    const sinceWatchedMs = past && past.why === why ? past.sinceWatchedMs : watchedMs;
    if (why === undefined) waiting.delete(key);
    else waiting.set(key, { why, sinceWatchedMs });
    return {
      name,
      pool,
      position,
      isChosen,
      state,
      refusal: isRefused ? { text: refusal, forMs: watchedMs - sinceWatchedMs } : undefined,
      silentForMs: isSilent ? watchedMs - sinceWatchedMs : 0,
      isUnused: isSilent && facts.unused === true,
    };
  });
  const chosen = members.filter(({ isChosen }) => isChosen);
  const hasShare = open !== undefined && isGiven(open);
  const hasWorkers = open !== undefined && isOfStep(observation.pools, open, chosen);
  const allHave = peers.unknown === undefined && chosen.every(({ state }) => state === 'in_force');
  const phase = toPhase(step.phase, isPaused, hasWorkers, allHave);
  const heldMs = phase === 'held' && step.phase === 'held' ? step.heldMs + passedMs : 0;
  const chosenSeenAtWatchedMs = hasWorkers || !hasShare ? watchedMs : before.chosenSeenAtWatchedMs;
  const gone = [...own.gone, ...peers.gone];
  const endedAbsences = noteEndedAbsences(step.endedAbsences, gone, connected, nowMs);
  const { judgement, ...figures } = judgeStep({ ...step, heldMs }, workers, observation, watchedMs);
  const hasReported = ({ key, counted }: KnownWorker) =>
    counted !== null || before.reporting.has(key);
  const lost = workers.filter(
    (each, at) => each.counted === null && hasReported(each) && members[at]?.isChosen === true,
  );
  /** Forgets workers that have left once they outnumber the connected ones. */
  function retain<Value>(of: ByKey<Value>): ByKey<Value> {
    return of.size <= 2 * byKey.size ? of : new Map([...of].filter(([key]) => byKey.has(key)));
  }
  const memory: WatchMemory = {
    ...counted,
    lastMs: nowMs,
    watchedMs,
    chosenSeenAtWatchedMs,
    reporting: new Set(connected.filter(hasReported).map(({ key }) => key)),
    step: {
      ...{ key: stepKey, sinceMs: step.sinceMs, phase, heldMs },
      bases: retain(figures.bases),
      slice: { ...figures.slice, bases: retain(figures.slice.bases) },
      waiting: retain(waiting),
      endedAbsences: retain(endedAbsences),
    },
  };
  const seen: Seen = {
    members,
    connected: connected.length,
    peopled: new Set(connected.map(({ pool }) => pool)),
    gone: {
      ...countGone(gone, endedAbsences, nowMs, peers.askedAtMs, step.sinceMs),
      mayBeElsewhere: observation.hasOthers,
    },
    judgement: toUnquiet(judgement, lost),
    unknown: peers.unknown,
    isLacked: peers.lacks,
    isGathered: isGathered(memory, nowMs),
    isAwaited: hasShare && !hasWorkers && watchedMs - chosenSeenAtWatchedMs < gatherMs,
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

function toPhase(
  before: WatchPhase,
  isPaused: boolean,
  hasWorkers: boolean,
  allHave: boolean,
): WatchPhase {
  if (isPaused) return 'paused';
  if (!hasWorkers) return 'deserted';
  // Neither a worker that lacks the revision again nor a peer that does not answer restarts the hold.
  return before === 'held' || allHave ? 'held' : 'spreading';
}

function noteEndedAbsences(
  before: ByKey<number>,
  gone: readonly GoneFacts[],
  connected: readonly KnownWorker[],
  nowMs: number,
): ByKey<number> {
  const present = new Set(connected.map((it) => toGoneKey(it.instance ?? undefined, it.id)));
  const ended = new Map(before);
  for (const { key, forMs } of gone) {
    const goneAtMs = nowMs - forMs;
    if (present.has(key)) ended.set(key, Math.max(goneAtMs, ended.get(key) ?? goneAtMs));
  }
  return ended;
}

/** Counts the workers that have left since the step began at `stepSinceMs`. Ended absences do not count, even if the
 * control plane to which the worker reconnected no longer answers. */
function countGone(
  gone: readonly GoneFacts[],
  endedAbsences: ByKey<number>,
  nowMs: number,
  peersAskedAtMs: number,
  stepSinceMs: number,
): Omit<Gone, 'mayBeElsewhere'> {
  const knownUntilMs = Math.min(nowMs, peersAskedAtMs);
  const left = new Map<string, GoneFacts>();
  for (const each of gone) {
    const { key, forMs } = each;
    const goneAtMs = nowMs - forMs;
    const endedMs = endedAbsences.get(key);
    const hasReturned = endedMs !== undefined && goneAtMs <= endedMs + longestDelayMs;
    const mayReconnect = knownUntilMs - goneAtMs < reconnectMs;
    const isSinceStep = forMs <= nowMs - stepSinceMs;
    if (isSinceStep && !hasReturned && !mayReconnect) left.set(key, each);
  }
  const having = [...left.values()].filter(({ hadIt }) => hadIt);
  const byPool = Map.groupBy(having, ({ pool = 0 }) => pool);
  const havingOf = new Map([...byPool].map(([pool, { length }]) => [pool, length]));
  return { having: having.length, havingOf, others: left.size - having.length };
}

/** Judges the step from its beginning, or the slice that ends now if that is worse. */
function judgeStep(
  step: WatchedStep,
  workers: readonly WorkerFacts[],
  observation: Observation,
  watchedMs: number,
): Pick<WatchedStep, 'bases' | 'slice'> & { readonly judgement: Judgement } {
  const bases = addBases(step.bases, workers);
  const sliceBases = addBases(step.slice.bases, workers);
  const hadTime = step.heldMs >= reportedMs;
  const lastedMs = watchedMs - step.slice.sinceWatchedMs;
  const isLong = lastedMs >= sliceMs;
  const ofStep = judgeSince(bases, bases, workers, observation, hadTime);
  const ofSlice = judgeSince(sliceBases, bases, workers, observation, hadTime && isLong);
  const holdMs = observation.pools.steps[observation.open?.step ?? 0]?.holdMs ?? 0;
  const number = step.heldMs > 0 ? Math.floor((step.heldMs - holdMs) / sliceMs) : beforeHold;
  const isDue = isLong || number !== step.slice.number;
  const judgement: Judgement = isWorse(ofSlice, isDue, ofStep)
    ? { ...ofSlice, text: `in the last ${formatDuration(lastedMs)}: ${ofSlice.text}` }
    : ofStep;
  const isOutage = judgement.kind === 'store';
  const { leftOut = observation.peers.leftOut } = observation.own;
  const left =
    leftOut === undefined
      ? ''
      : `; ${toCountText(leftOut.count, 'domain')}, such as '${toExcerpt(leftOut.first)}', counted in all alone`;
  // A slice lasts until it can be judged.
  const endsNow = isDue && ofSlice.kind !== 'silent' && ofSlice.kind !== 'unclear';
  const later = endsNow
    ? { sinceWatchedMs: watchedMs, number, bases: addBases(new Map(), workers) }
    : { ...step.slice, bases: sliceBases };
  return {
    bases: passOutage(bases, workers, isOutage),
    slice: { ...later, bases: passOutage(later.bases, workers, isOutage) },
    judgement: { ...judgement, text: `${judgement.text}${left}` },
  };
}

function isWorse(slice: Judgement, isDue: boolean, step: Judgement): boolean {
  // The step has already failed, on more evidence.
  if (step.kind === 'bad' || step.kind === 'store') return false;
  // A slice that cannot be judged leaves only a good step in doubt, and does so before it is due.
  if (slice.kind === 'unclear') return step.kind === 'good';
  return isDue && (slice.kind === 'bad' || slice.kind === 'store');
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
