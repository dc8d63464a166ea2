// The workers of all control planes as a rollout sees them at one look: who has the revision, and what they have
// counted since the step began.
import type { Clock } from '../../shared/clock.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { RolloutOnRecord } from '../record/record.ts';
import {
  type GoneFacts,
  type PeerFacts,
  type RolloutFacts,
  toGoneKey,
  type WorkerFacts,
} from './facts.ts';
import { type CountedWorker, type Judgement, judgeAll, type Traffic } from './judgement.ts';
import { createIsWithin, isGiven, type Pools, placeOf } from './pools.ts';
import { type Gone, type Member, reportedMs, type Seen } from './view.ts';

export interface Look {
  /** The rollout of the revision on trial; undefined before it is on record. */
  readonly open: RolloutOnRecord | undefined;
  readonly pools: Pools;
  readonly overLimitPoints: number;
  readonly own: Pick<RolloutFacts, 'workers' | 'gone'>;
  readonly peers: PeerFacts;
  /** Whether there are peers that this control plane does not ask. */
  readonly hasOthers: boolean;
}

export interface FleetView {
  see(look: Look): Seen;
  /** For the time without a rollout: only how many workers are connected. */
  noteCount(count: number): void;
  /** Whether the workers that reconnect after a start have come, as far as one can tell. */
  isGathered(): boolean;
  /**
   * Waits for workers again, since another control plane led until now: its workers may be on their way to this
   * one.
   */
  gatherAgain(): void;
}

/**
 * After a start of a control plane the workers connect one by one: a share of the first few would not be
 * representative. Workers of a share that leave together may come back as late.
 */
const gatherMs = 30_000;
const gatherQuietMs = 5_000;
/** A process that stood still has not watched meanwhile. */
const longestLookMs = 2_000;
/** A connection that broke is no evidence yet: most workers connect again within this time. */
const comesBackMs = 3_000;
/** How much later one moment may seem by another answer of a peer. */
const answerMs = 2_000;
/** The end of a hold counts as much as its begin: each part that is so long is judged by itself, too. */
const sliceMs = 10_000;

/** The counts of a worker when it was first seen in the step. */
interface Base extends Traffic {
  readonly series: string;
}

type Bases = Map<string, Base>;

/** A part of a hold. */
interface Slice {
  readonly sinceMs: number;
  readonly bases: Bases;
}

/** A step of one rollout. */
interface Step {
  readonly key: string;
  readonly sinceMs: number;
  heldMs: number;
  isHeldByAll: boolean;
  /** The base of each worker. */
  readonly bases: Bases;
  /** The newest, since a time watched. */
  slice: Slice;
  /** The time watched since which each worker gives no answer. */
  readonly silentSinceMs: Map<string, number>;
  /** The time watched since which each worker refuses. */
  readonly refusedSinceMs: Map<string, number>;
  /** By worker that was missed at one control plane and was at another one: since when it was missed. */
  readonly cameBack: Map<string, number>;
}

export function createFleetView(clock: Clock): FleetView {
  let gatherSinceMs = clock.monotonicMs();
  /** `isOfAll`: with those of peers, which only a leader knows. */
  let connected = { count: 0, isOfAll: false, sinceMs: clock.monotonicMs() };
  let lastMs = clock.monotonicMs();
  let watchedMs = 0;
  let step = beginStep('');
  /** When a worker that was given it was connected last, in time watched. */
  let chosenSeenMs = 0;

  function noteCount(count: number, isOfAll = false): void {
    const isNews = isOfAll === connected.isOfAll && count !== connected.count;
    connected = { count, isOfAll, sinceMs: isNews ? clock.monotonicMs() : connected.sinceMs };
  }

  function isGathered(): boolean {
    const nowMs = clock.monotonicMs();
    if (nowMs - gatherSinceMs >= gatherMs) return connected.count > 0;
    const quietSinceMs = Math.max(connected.sinceMs, gatherSinceMs);
    return connected.count > 1 && nowMs - quietSinceMs >= gatherQuietMs;
  }

  function beginStep(key: string): Step {
    return {
      key,
      sinceMs: clock.monotonicMs(),
      heldMs: 0,
      isHeldByAll: false,
      bases: new Map(),
      slice: { sinceMs: watchedMs, bases: new Map() },
      silentSinceMs: new Map(),
      refusedSinceMs: new Map(),
      cameBack: new Map(),
    };
  }

  /** For how long a worker has been so; `since` has those that were so at the look before. */
  function countMs(since: Map<string, number>, key: string, isSo: boolean): number {
    if (!isSo) {
      since.delete(key);
      return 0;
    }
    const sinceMs = since.get(key) ?? watchedMs;
    since.set(key, sinceMs);
    return watchedMs - sinceMs;
  }

  /** Of the whole step, or of the slice that ends now where that is bad. */
  function judge(workers: readonly WorkerFacts[], look: Look): Judgement {
    const whole = judgeSince(step.bases, workers, look, step.heldMs >= reportedMs);
    const { sinceMs, bases } = step.slice;
    const slice = judgeSince(bases, workers, look, false);
    const lastedMs = watchedMs - sinceMs;
    if (lastedMs < sliceMs || slice.kind === 'silent') return whole;
    step.slice = { sinceMs: watchedMs, bases: new Map() };
    judgeSince(step.slice.bases, workers, look, false);
    if (whole.kind === 'bad' || slice.kind !== 'bad') return whole;
    return { kind: 'bad', text: `in the last ${formatDuration(lastedMs)}: ${slice.text}` };
  }

  /**
   * Workers that have come back, or may still, are not gone, also when the control plane to which they have come
   * gives no answer any more.
   */
  function countGone(
    gone: readonly GoneFacts[],
    known: ReadonlySet<string>,
    { nowMs, askedAtMs }: { readonly nowMs: number; readonly askedAtMs: number },
  ): Omit<Gone, 'mayBeElsewhere'> {
    const knownUntilMs = Math.min(nowMs, askedAtMs);
    const sinceMs = nowMs - step.sinceMs;
    const left = new Map<string, GoneFacts>();
    for (const each of gone) {
      const { key, forMs } = each;
      const goneAtMs = nowMs - forMs;
      if (known.has(key))
        step.cameBack.set(key, Math.max(goneAtMs, step.cameBack.get(key) ?? goneAtMs));
      const isBack = goneAtMs <= (step.cameBack.get(key) ?? Number.NEGATIVE_INFINITY) + answerMs;
      const mayComeBack = knownUntilMs - goneAtMs < comesBackMs;
      if (!isBack && !mayComeBack && forMs <= sinceMs) left.set(key, each);
    }
    const having = [...left.values()].filter(({ hadIt }) => hadIt).length;
    return { having, others: left.size - having };
  }

  /** Forgets workers that have left when they are more than those that are there. */
  function forgetOthers(present: ReadonlyMap<string, unknown>): void {
    for (const known of [
      step.bases,
      step.slice.bases,
      step.silentSinceMs,
      step.refusedSinceMs,
      step.cameBack,
    ]) {
      if (known.size <= 2 * present.size) continue;
      for (const key of [...known.keys()]) if (!present.has(key)) known.delete(key);
    }
  }

  return {
    noteCount,
    isGathered,
    gatherAgain() {
      gatherSinceMs = clock.monotonicMs();
      step.heldMs = 0;
    },
    see(look) {
      const { open, own, peers } = look;
      const nowMs = clock.monotonicMs();
      const passedMs = Math.min(nowMs - lastMs, longestLookMs);
      lastMs = nowMs;
      watchedMs += passedMs;
      const stepKey = open === undefined ? '' : `${open.id} ${open.step}`;
      if (stepKey !== step.key) step = beginStep(stepKey);
      // A worker that changes its control plane is at two of them for a moment.
      const byKey = new Map([...peers.workers, ...own.workers].map((each) => [each.key, each]));
      noteCount(byKey.size, peers.workers.length > 0);
      const workers = [...byKey.values()].filter(({ isAffected }) => isAffected);
      const isWithin = createIsWithin(open ?? { chosen: [], whole: [] });
      const members = workers.map((facts): Member => {
        const { key, id, instance, name, pool, state, refusal } = facts;
        const place = placeOf(open?.id ?? '', id, instance ?? undefined);
        const isChosen = isWithin({ pool, place });
        const isRefused = isChosen && refusal !== null;
        const refusedMs = countMs(step.refusedSinceMs, key, isRefused);
        // Of a peer that is unknown nobody knows what its workers have answered.
        const isSilent = state === 'pending' && peers.unknown === undefined;
        return {
          name,
          pool,
          place,
          isChosen,
          state,
          refusal: isRefused ? { text: refusal, forMs: refusedMs } : undefined,
          silentForMs: countMs(step.silentSinceMs, key, isSilent),
        };
      });
      const chosen = members.filter(({ isChosen }) => isChosen);
      if (step.isHeldByAll) step.heldMs += passedMs;
      else step.isHeldByAll = peers.unknown === undefined && chosen.every(isInForce);
      // Somebody who resumes a rollout wants the step to be watched again.
      if (chosen.length === 0 || open?.outcome === 'paused') {
        step.isHeldByAll = false;
        step.heldMs = 0;
      }
      const hasShare = open !== undefined && isGiven(open);
      if (chosen.length > 0 || !hasShare) chosenSeenMs = watchedMs;
      forgetOthers(byKey);
      return {
        members,
        connected: byKey.size,
        gone: {
          ...countGone([...own.gone, ...peers.gone], toGoneKeys(byKey.values()), {
            nowMs,
            askedAtMs: peers.askedAtMs,
          }),
          mayBeElsewhere: look.hasOthers,
        },
        judgement: judge(workers, look),
        unknown: peers.unknown,
        isLacked: peers.lacks,
        isGathered: isGathered(),
        isAwaited: hasShare && chosen.length === 0 && watchedMs - chosenSeenMs < gatherMs,
        heldMs: step.heldMs,
      };
    },
  };
}

/** The workers of each pool, by what they have counted since their bases. One that is new gets its base. */
function judgeSince(
  bases: Bases,
  workers: readonly WorkerFacts[],
  { pools, overLimitPoints }: Look,
  hadTime: boolean,
): Judgement {
  const sides = new Map<number, { having: CountedWorker[]; others: CountedWorker[] }>();
  for (const worker of workers) {
    const counted = countedSince(bases, worker);
    if (counted === undefined) continue;
    const side = sides.get(worker.pool) ?? { having: [], others: [] };
    sides.set(worker.pool, side);
    (worker.counted?.hasIt ? side.having : side.others).push(counted);
  }
  const groups = [...sides].map(([pool, side]) => ({ name: pools.nameOf(pool), ...side }));
  return judgeAll(groups, overLimitPoints, hadTime);
}

function countedSince(
  bases: Bases,
  { key, name, counted }: WorkerFacts,
): CountedWorker | undefined {
  if (counted === null) return undefined;
  const now = { ...counted, noMatch: counted.noMatch ?? 0 };
  const known = bases.get(key);
  const base = known?.series === now.series ? known : now;
  bases.set(key, base);
  return {
    name,
    decisions: now.decisions - base.decisions,
    overLimit: now.overLimit - base.overLimit,
    errors: now.errors - base.errors,
    noMatch: now.noMatch - base.noMatch,
  };
}

function toGoneKeys(workers: Iterable<WorkerFacts>): Set<string> {
  return new Set([...workers].map(({ instance, id }) => toGoneKey(instance ?? undefined, id)));
}

function isInForce({ state }: Member): boolean {
  return state === 'in_force';
}
