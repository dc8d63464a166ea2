// Brings a new revision to the workers in steps: each step's workers must accept it and do as well as the
// others before the next ones get it; otherwise it is taken back. The snapshot cache starts rollouts and
// serves nodes, steps.ts decides on them, leader.ts says which control plane does. Whoever decides
// changes nothing but the record; all follow that, the leader too (behaviour: record-before-workers).
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import type { Log } from '../../shared/log.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import { toShortId } from '../store/revision.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import { noPeers, type RolloutFacts, readOwnFacts } from './facts.ts';
import { createFleetView } from './fleet-view.ts';
import type { Traffic } from './judgement.ts';
import type { Leadership } from './leader.ts';
import { type AskPeers, createPeerWatch } from './peer-watch.ts';
import type { RolloutPlan } from './plan.ts';
import { isWithin, type Limits } from './pools.ts';
import { isOpen, type RolloutRecord } from './record.ts';
import type { Phase, RolloutState } from './rollout-state.ts';
import { begin, enter, type Running } from './running.ts';
import { placeOf } from './share.ts';
import { createSteps } from './steps.ts';

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
  readonly workers: Pick<ConnectedWorkers, 'list'>;
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

export function createRollout(deps: RolloutDeps): Rollout {
  const { plan, snapshots, leadership, log, clock } = deps;
  const fleet = createFleetView(deps, clock);
  const steps = createSteps({
    plan,
    fleet,
    propose: (now, change, onWritten) => void propose(now, change, onWritten),
    takeBack: (now, reason) => void takeBack(now, reason),
    pause: (now, reason) => void pause(now, reason),
    log,
    clock,
  });
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
    if (running === undefined) {
      running = begin(trial, plan, startedMs, clock);
      endsTold = 0;
    }
    follow(running);
    if (running === undefined) return;
    if (leadership.isShared && leadership.leads) peerWatch.ask(leadership.contentId);
    const expected = { ...running, next: nextRevision() };
    const peers = leadership.isShared && leadership.leads ? peerWatch.read(expected) : noPeers;
    fleet.update(peers, running.pools);
    if (!isProposing) decide(running);
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
      if (now.phase !== 'gathering') enter(now, 'spreading', clock);
    }
    if (!isDeepStrictEqual(record.limits, now.limits)) offer(now, record.limits);
    if (record.outcome === 'paused') {
      enter(now, 'paused', clock);
      now.text = record.reason;
    } else if (now.phase === 'paused') {
      enter(now, now.limits.length === 0 ? 'gathering' : 'spreading', clock);
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
      if (now.phase !== 'paused') steps.watch(now);
      if (leadership.trouble !== undefined) now.text = leadership.trouble;
    } else if (isVacant || (record !== undefined && leads)) {
      takeOver(now);
    } else {
      now.text = toFollowerText(now);
      if (!isOnRecord) lookForOthers();
      else if (now.phase !== 'paused') enter(now, toFollowerPhase(now), clock);
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
    enter(now, before?.outcome === 'paused' ? 'paused' : 'gathering', clock);
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
