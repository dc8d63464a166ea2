// Brings a new revision to the workers in steps: each step's workers must accept it and do as well as the
// others before the next ones get it; otherwise it is taken back. The snapshot cache starts rollouts and
// serves nodes, judgement.ts compares the workers, leader.ts says which control plane decides. Whoever decides
// changes nothing but the record; all follow that, the leader too (behaviour: record-before-workers).
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { Log } from '../../shared/log.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { TrialState } from '../snapshot/snapshot-state.ts';
import { toShortId } from '../store/revision.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import { noPeers, type RolloutFacts, readOwnFacts } from './facts.ts';
import { createFleetView } from './fleet-view.ts';
import type { Traffic } from './judgement.ts';
import type { Leadership } from './leader.ts';
import { type AskPeers, createPeerWatch } from './peer-watch.ts';
import type { RolloutPlan } from './plan.ts';
import { isWithin, type Limits, type Pools, toPools, widen } from './pools.ts';
import { isOpen, type RolloutRecord } from './record.ts';
import type { Phase, RolloutState } from './rollout-state.ts';
import { placeOf } from './share.ts';

export type RolloutAction = 'pause' | 'resume' | 'promote' | 'abort';

/** What the control plane did by itself, for the audit log. */
export interface RolloutEvent {
  readonly revision: string;
  /** Such as `take back revision 0123456789ab: ...`. */
  readonly what: string;
}

export interface Rollout {
  /** Starts following the snapshots' trials and the record, which has been read. */
  start(): void;
  /** Undefined without a rollout. */
  state(): RolloutState | undefined;
  /** Why it was not done, for people; undefined when it was. */
  act(action: RolloutAction, reason: string): Promise<string | undefined>;
  /** For the control plane that leads, which knows the record with this content. */
  tellPeer(contentId: string | undefined): RolloutFacts;
  stop(): void;
}

export interface RolloutDeps {
  readonly plan: RolloutPlan;
  readonly snapshots: SnapshotCache;
  readonly workers: ConnectedWorkers;
  /** By node id, of the workers that report: since their start. */
  readonly readTraffic: () => ReadonlyMap<string, Traffic>;
  readonly leadership: Leadership;
  /** Undefined without peers. */
  readonly askPeers: AskPeers | undefined;
  /** Looks for a newer revision. Never rejects. */
  readonly lookAtStore: () => Promise<void>;
  readonly onEvent: (event: RolloutEvent) => void;
  readonly log: Log;
  readonly clock: Clock;
}

const lookMs = 1_000;
const maxEndsTold = 5;
/** Before the first record. */
const nothing = { base: '', after: '', outcome: 'running', reason: '' } as const;

interface Running {
  readonly revision: string;
  readonly sinceMs: number;
  readonly pools: Pools;
  /** As on record, and served here. */
  step: number;
  limits: Limits;
  phase: Phase;
  phaseSinceMs: number;
  gatherSinceMs: number;
  text: string;
  /** Why nobody here has it any more, before that is on record. */
  withdrawn: { readonly reason: string; readonly isAutomatic: boolean } | undefined;
}

export function createRollout(deps: RolloutDeps): Rollout {
  const { plan, snapshots, leadership, log, clock } = deps;
  const fleet = createFleetView(deps, clock);
  const peerWatch = createPeerWatch(deps.askPeers, leadership.hear);
  const startedMs = clock.monotonicMs();
  let running: Running | undefined;
  /** Of the last rollout that came to its end here: the same revision may come again. */
  let endedId: string | undefined;
  let endsTold = 0;
  let lookedFor: string | undefined;
  let stops: (() => void)[] = [];
  let isLooking = false;
  let isProposing = false;

  function lookOnce(): void {
    // A look changes the snapshots, which triggers another one.
    if (isLooking) return;
    isLooking = true;
    look();
    isLooking = false;
  }

  function look(): void {
    const { trial } = snapshots.state();
    leadership.tend(trial !== undefined);
    if (running !== undefined && running.revision !== trial?.revision.id) giveUp(running);
    if (trial === undefined) {
      fleet.updateCount();
      tellEnd();
      lookForOthers();
      return;
    }
    running ??= begin(trial);
    follow(running);
    if (running === undefined) return;
    if (leadership.isShared && leadership.leads) peerWatch.ask(leadership.contentId);
    const expected = { ...running, next: nextRevision() };
    const peers = leadership.isShared && leadership.leads ? peerWatch.read(expected) : noPeers;
    fleet.update(peers, running.pools);
    if (!isProposing) decide(running);
  }

  function begin({ revision, sinceMs, groups }: TrialState): Running {
    endsTold = 0;
    const nowMs = clock.monotonicMs();
    return {
      revision: revision.id,
      sinceMs,
      pools: toPools(plan.steps, groups),
      step: 0,
      limits: [],
      phase: 'gathering',
      phaseSinceMs: nowMs,
      gatherSinceMs: startedMs,
      text: '',
      withdrawn: undefined,
    };
  }

  /** Another revision has taken its place in the store. */
  function giveUp(now: Running): void {
    running = undefined;
    const record = recordOf(now);
    endedId = record?.id;
    if (!leadership.leads || record === undefined || !isOpen(record)) return;
    const reason = 'another revision has taken its place';
    void leadership.propose({ ...record, outcome: 'taken_back', reason });
  }

  /** Peers hear of the end when they are asked. One that misses it reads the record by itself. */
  function tellEnd(): void {
    const { record, leads, isShared, contentId } = leadership;
    if (!isShared || !leads || record === undefined || isOpen(record)) return;
    if (endsTold++ < maxEndsTold) peerWatch.ask(contentId);
  }

  /** A peer may roll out a revision that is not known here yet. */
  function lookForOthers(): void {
    const { record } = leadership;
    if (record === undefined || !isOpen(record) || record.revision === lookedFor) return;
    lookedFor = record.revision;
    void deps.lookAtStore();
  }

  function recordOf({ revision }: Running): RolloutRecord | undefined {
    const { record } = leadership;
    return record?.revision === revision && record.id !== endedId ? record : undefined;
  }

  /** Serves what is on record. */
  function follow(now: Running): void {
    const record = recordOf(now);
    if (record === undefined) return;
    if (!isOpen(record)) {
      running = undefined;
      endedId = record.id;
      tellEnd();
      if (record.outcome === 'in_force') snapshots.endTrial();
      else snapshots.takeBackTrial(record.reason);
      return;
    }
    if (now.withdrawn !== undefined) return;
    if (record.step !== now.step) {
      now.step = record.step;
      if (now.phase !== 'gathering') enter(now, 'spreading');
    }
    if (!isDeepStrictEqual(record.limits, now.limits)) offer(now, record.limits);
    if (record.outcome === 'paused') {
      enter(now, 'paused');
      now.text = record.reason;
    } else if (now.phase === 'paused') {
      enter(now, now.limits.length === 0 ? 'gathering' : 'spreading');
    }
  }

  function offer(now: Running, limits: Limits): void {
    now.limits = limits;
    const { poolOf } = now.pools;
    snapshots.offerTrial((node) =>
      isWithin(limits, { pool: poolOf(node), place: placeOf(node.id) }),
    );
  }

  function decide(now: Running): void {
    const { record, leads, isVacant } = leadership;
    const isOnRecord = recordOf(now) !== undefined;
    if (now.withdrawn !== undefined) {
      void withdraw(now, now.withdrawn);
      return;
    }
    const refusal = fleet.chosen(now.limits).find((worker) => worker.refusal !== null);
    if (isOnRecord && refusal !== undefined) {
      void takeBack(now, `worker ${refusal.name} refuses it: ${refusal.refusal}`);
    } else if (isOnRecord && leads) {
      if (now.phase !== 'paused') watch(now);
      if (leadership.trouble !== undefined) now.text = leadership.trouble;
    } else if (isVacant || (record !== undefined && leads)) {
      takeOver(now);
    } else {
      now.text = toFollowerText(now);
      if (!isOnRecord) lookForOthers();
      else if (now.phase !== 'paused') enter(now, toFollowerPhase(now));
    }
  }

  function toFollowerText(now: Running): string {
    const { record, trouble } = leadership;
    if (trouble !== undefined) return trouble;
    if (record === undefined || record.revision === now.revision)
      return recordOf(now)?.reason ?? '';
    return `waits for the rollout of ${toShortId(record.revision)}`;
  }

  /** Begins the rollout, or goes on with one whose leader has stopped. */
  function takeOver(now: Running): void {
    const before = recordOf(now);
    const { inForce } = snapshots.state();
    enter(now, before?.outcome === 'paused' ? 'paused' : 'gathering');
    peerWatch.reset();
    if (before === undefined) {
      void propose(now, { base: inForce?.revision.id ?? '', after: '' }, () =>
        log.notice(`Rollout of revision ${toShortId(now.revision)}: begins`),
      );
      return;
    }
    now.gatherSinceMs = leadership.isShared ? clock.monotonicMs() : startedMs;
    void propose(now, { after: before.leader.name }, () => {
      const where = `at step ${before.step + 1}`;
      const how = before.outcome === 'paused' ? `is paused still ${where}` : `goes on ${where}`;
      const whose = `${leadership.name} leads after ${before.leader.name}`;
      log.notice(`Rollout of revision ${toShortId(now.revision)}: ${how}, ${whose}`);
      const id = toShortId(now.revision);
      tell(now, `lead the rollout of revision ${id} after ${before.leader.name}: it ${how}`);
    });
  }

  /** Changes the record, and tells what has been done when it has. */
  function propose(
    now: Running,
    change: Partial<RolloutRecord>,
    onWritten = () => {},
  ): Promise<boolean> {
    const { revision, step, limits } = now;
    const before = recordOf(now) ?? { ...nothing, id: randomUUID() };
    isProposing = true;
    const proposed = leadership.propose({ ...before, revision, step, limits, ...change });
    return proposed.then((isWritten) => {
      isProposing = false;
      if (isWritten) onWritten();
      lookOnce();
      return isWritten;
    });
  }

  function tell({ revision }: Running, what: string): void {
    deps.onEvent({ revision, what });
  }

  function watch(now: Running): void {
    if (now.phase === 'gathering') {
      now.text = fleet.unknown ?? 'workers are still connecting';
      if (fleet.unknown !== undefined || !fleet.isGathered(now.gatherSinceMs)) return;
      if (now.limits.length === 0) {
        take(now, now.step);
        return;
      }
      enter(now, 'spreading');
    }
    const having = fleet.chosen(now.limits);
    if (having.length === 0 && fleet.unknown === undefined) {
      void pause(now, 'the workers of this step have left');
      return;
    }
    if (shrinkToShare(now)) return;
    const waiting = having.filter(({ state }) => state !== 'in_force');
    if (waiting[0] !== undefined || (fleet.unknown !== undefined && now.phase === 'spreading')) {
      enter(now, 'spreading');
      now.text =
        fleet.unknown ??
        `waits for ${toCountText(waiting.length, 'worker')}, such as ${waiting[0]?.name}`;
      return;
    }
    if (now.phase === 'spreading') {
      fleet.startCounting();
      enter(now, 'holding');
    }
    hold(now);
  }

  function hold(now: Running): void {
    const holdMs = now.pools.holdMsOf(now.step);
    const judgement = fleet.judge(now.limits, plan.overLimitPoints, now.pools);
    if (judgement.kind === 'bad') {
      void takeBack(now, judgement.text);
      return;
    }
    const leftMs = now.phaseSinceMs + holdMs - clock.monotonicMs();
    now.text = `is watched for another ${formatDuration(Math.max(0, Math.ceil(leftMs / 1000)) * 1000)}`;
    if (judgement.kind === 'silent') now.text += ` (${judgement.text})`;
    if (leftMs > 0) return;
    if (fleet.unknown !== undefined) {
      now.text = fleet.unknown;
    } else if (judgement.kind === 'good') {
      advance(now, 'did as well as the others');
    } else if (now.phase === 'holding') {
      enter(now, 'silent');
    } else if (plan.onSilence === 'proceed') {
      advance(now, `could not be judged: ${judgement.text}`);
    } else {
      void pause(now, `too little traffic to judge: ${judgement.text}`);
    }
  }

  function advance(now: Running, why: string): void {
    log.notice(`Rollout of revision ${toShortId(now.revision)}: step ${now.step + 1} ${why}`);
    take(now, now.step + 1);
  }

  /** Gives it to the workers of this step, or of the next one that has any; after the last one to all. */
  function take(now: Running, from: number): void {
    const { pools } = now;
    const workers = fleet.given();
    now.text = '';
    for (let step = from; step < pools.stepCount; step++) {
      const limits = widen(pools.limitsAt(step, workers), now.limits);
      const { length } = workers.filter((worker) => isWithin(limits, worker));
      if (length === 0) continue;
      if (length === workers.length) break;
      void propose(now, { outcome: 'running', step, limits, reason: '' }, () => {
        log.notice(
          `Rollout of revision ${toShortId(now.revision)}: step ${step + 1} of ${pools.stepCount + 1}, ${length} of ${toCountText(workers.length, 'worker')}`,
        );
      });
      return;
    }
    const isDone = from >= pools.stepCount;
    const why = isDone ? 'all steps are done' : 'there are no workers to compare with';
    log.notice(`Rollout of revision ${toShortId(now.revision)}: ${why}, so everybody gets it`);
    void propose(now, { outcome: 'in_force', reason: '' });
  }

  /** Workers that connect later may be on this side, but must not exceed the share. */
  function shrinkToShare(now: Running): boolean {
    if (fleet.unknown !== undefined) return false;
    const workers = fleet.given();
    const share = now.pools.limitsAt(now.step, workers);
    const limits = now.limits.map((limit, pool) => {
      const smaller = share[pool] ?? limit;
      return smaller < 0 ? limit : Math.min(limit, smaller);
    });
    const losesOne = workers.some(
      (worker) => isWithin(now.limits, worker) && !isWithin(limits, worker),
    );
    if (losesOne) void propose(now, { limits });
    return losesOne;
  }

  /** Here at once, everywhere when it is on record. */
  function takeBack(now: Running, reason: string, isAutomatic = true): Promise<boolean> {
    const { length } = fleet.chosen(now.limits);
    now.withdrawn = { reason: `${reason}; ${toCountText(length, 'worker')} had it`, isAutomatic };
    const proposed = withdraw(now, now.withdrawn);
    offer(now, []);
    return proposed;
  }

  function withdraw(
    now: Running,
    { reason, isAutomatic }: NonNullable<Running['withdrawn']>,
  ): Promise<boolean> {
    return propose(now, { outcome: 'taken_back', limits: [], reason }, () => {
      if (isAutomatic) tell(now, `take back revision ${toShortId(now.revision)}: ${reason}`);
    });
  }

  function pause(now: Running, reason: string): Promise<boolean> {
    return propose(now, { outcome: 'paused', reason }, () => {
      log.warning(
        `Rollout of revision ${toShortId(now.revision)}: paused (${reason}); 'rollout resume', 'promote' or 'abort' goes on`,
      );
    });
  }

  function enter(now: Running, phase: Phase): void {
    if (now.phase === phase) return;
    now.phase = phase;
    now.phaseSinceMs = clock.monotonicMs();
  }

  function toFollowerPhase(now: Running): Phase {
    if (now.limits.length === 0) return 'gathering';
    return fleet.chosen(now.limits).every(({ state }) => state === 'in_force')
      ? 'holding'
      : 'spreading';
  }

  function nextRevision(): string | undefined {
    const { newest } = snapshots.state();
    return newest?.isWaiting ? newest.revision.id : undefined;
  }

  /** The control plane that decides. */
  function leader(): RolloutState['leader'] {
    const { record, isShared, leads } = leadership;
    if (!isShared || record === undefined || !isOpen(record)) return undefined;
    return { name: record.leader.name, isThis: leads, after: record.after || undefined };
  }

  function doAct(now: Running, action: RolloutAction, reason: string): Promise<boolean> {
    if (action === 'pause') return pause(now, reason);
    if (action === 'promote') return propose(now, { outcome: 'in_force', reason: '' });
    if (action === 'abort') return takeBack(now, reason, false);
    return propose(now, { outcome: 'running', reason: '' });
  }

  return {
    start() {
      leadership.onChange(lookOnce);
      stops = [snapshots.onChange(lookOnce), repeatAfter(clock, lookMs, lookOnce)];
      lookOnce();
    },
    state() {
      if (running === undefined) return undefined;
      const { revision, sinceMs, pools, step, limits, phase, text } = running;
      const having = fleet.chosen(limits);
      return {
        revision,
        sinceMs,
        step: phase === 'gathering' && limits.length === 0 ? 0 : step + 1,
        steps: pools.stepCount + 1,
        phase,
        text,
        workers: {
          having: having.filter(({ state }) => state === 'in_force').length,
          chosen: having.length,
          others: fleet.count() - having.length,
        },
        leader: leader(),
      };
    },
    async act(action, reason) {
      if (running === undefined) return 'no rollout is under way';
      const { record } = leadership;
      const { phase } = running;
      if (record !== undefined && record.revision !== running.revision && isOpen(record)) {
        return `the rollout of ${toShortId(record.revision)} is under way, which ${record.leader.name} leads`;
      }
      if (action === 'resume' && phase !== 'paused') return 'the rollout is not paused';
      if (action === 'pause' && phase === 'paused') return 'the rollout is paused already';
      if (await doAct(running, action, reason)) return undefined;
      if (leadership.trouble !== undefined) return leadership.trouble;
      return 'the rollout has changed meanwhile: look at its state and try again';
    },
    tellPeer(contentId) {
      const { trial, inForce } = snapshots.state();
      if (contentId !== undefined) {
        leadership.hear(contentId);
        leadership.tend(trial !== undefined);
      }
      return {
        trial: trial?.revision.id ?? null,
        inForce: inForce?.revision.id ?? null,
        limits: running?.limits ?? [],
        record: leadership.contentId ?? null,
        workers: readOwnFacts(deps, running?.pools),
      };
    },
    stop() {
      for (const end of stops) end();
    },
  };
}
