// Brings a new revision to the workers in steps: each step's workers must accept it and do as well as the
// others before the next ones get it; otherwise it is taken back. The snapshot cache starts rollouts and
// serves nodes, judgement.ts compares the workers, leader.ts says which control plane decides. Whoever decides
// changes nothing but the record; all follow that, the leader too (behaviour: record-before-workers).
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { Log } from '../../shared/log.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import { toShortId } from '../store/revision.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import {
  noPeers,
  type PeerFacts,
  type RolloutFacts,
  readOwnFacts,
  type WorkerFacts,
} from './facts.ts';
import { judge, since, sum, type Traffic } from './judgement.ts';
import type { Leadership } from './leader.ts';
import { type AskPeers, createPeerWatch } from './peer-watch.ts';
import type { RolloutPlan } from './plan.ts';
import { isOpen, type RolloutRecord } from './record.ts';
import { findLimit, placeOf } from './share.ts';

export type RolloutAction = 'pause' | 'resume' | 'promote' | 'abort';

/** Plain data, for the API and the status command. */
export interface RolloutState {
  readonly revision: string;
  /** Wall time. */
  readonly sinceMs: number;
  /** Counted from 1; 0 before any worker has it. */
  readonly step: number;
  readonly steps: number;
  readonly phase: Phase;
  /** One sentence for people: what it waits for. */
  readonly text: string;
  /** Of all control planes where this one leads, else of this one. */
  readonly workers: { readonly having: number; readonly chosen: number; readonly others: number };
  /** Which control plane decides; undefined where there is only this one, and while none does. */
  readonly leader: RolloutLeader | undefined;
}

export interface RolloutLeader {
  readonly name: string;
  readonly isThis: boolean;
  /** The leader before, which has stopped; undefined where this one began. */
  readonly after: string | undefined;
}

/** `gathering`: workers are still connecting. `spreading`: not all of the step have it. `holding`: they
 * have it, and are watched. `silent`: too little traffic to judge, watched for a second hold. */
export type Phase = 'gathering' | 'spreading' | 'holding' | 'silent' | 'paused';

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
  /** For the control plane that leads, which has the record in this version. */
  tellPeer(version: string | undefined): RolloutFacts;
  stop(): void;
}

export interface RolloutDeps {
  readonly plan: RolloutPlan;
  readonly snapshots: SnapshotCache;
  readonly workers: ConnectedWorkers;
  /** Since that worker's start; undefined when it does not report. */
  readonly trafficOf: (nodeId: string) => Traffic | undefined;
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
/** After a start of a control plane the workers connect one by one: a share of the first few would not be
 * representative. */
const gatherMs = 30_000;
const gatherQuietMs = 5_000;

interface Running {
  readonly revision: string;
  readonly sinceMs: number;
  /** As on record, and served here. */
  step: number;
  limit: number;
  phase: Phase;
  phaseSinceMs: number;
  gatherSinceMs: number;
  text: string;
  /** Each worker's counts at the start of the hold, or when it was first seen after that. */
  baseline: Map<string, Traffic>;
  /** Why nobody here has it any more, before that is on record. */
  withdrawn: string | undefined;
}

export function createRollout(deps: RolloutDeps): Rollout {
  const { plan, snapshots, leadership, log, clock } = deps;
  const peerWatch = createPeerWatch(deps.askPeers, leadership.hear);
  const startedMs = clock.monotonicMs();
  let running: Running | undefined;
  let own: readonly WorkerFacts[] = [];
  let peers: PeerFacts = noPeers;
  let connected = { count: 0, sinceMs: startedMs };
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
      peers = noPeers;
      noteConnected();
      lookForOthers();
      return;
    }
    running ??= begin(trial.revision.id, trial.sinceMs);
    follow(running);
    if (running === undefined) return;
    own = readOwnFacts(deps);
    if (leadership.isShared && leadership.leads) peerWatch.ask(leadership.contentId);
    peers = leadership.isShared ? peerWatch.read({ ...running, next: nextRevision() }) : noPeers;
    noteConnected();
    if (!isProposing) decide(running);
  }

  function begin(revision: string, sinceMs: number): Running {
    const nowMs = clock.monotonicMs();
    return {
      revision,
      sinceMs,
      step: 0,
      limit: -1,
      phase: 'gathering',
      phaseSinceMs: nowMs,
      gatherSinceMs: startedMs,
      text: '',
      baseline: new Map(),
      withdrawn: undefined,
    };
  }

  /** Another revision has taken its place in the store. */
  function giveUp(now: Running): void {
    running = undefined;
    const record = recordOf(now);
    if (!leadership.leads || record === undefined || !isOpen(record)) return;
    const reason = 'another revision has taken its place';
    void leadership.propose({ ...record, outcome: 'taken_back', reason });
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
    return record?.revision === revision ? record : undefined;
  }

  /** Serves what is on record. */
  function follow(now: Running): void {
    const record = recordOf(now);
    if (record === undefined) return;
    if (!isOpen(record)) {
      running = undefined;
      if (record.outcome === 'in_force') snapshots.endTrial();
      else snapshots.takeBackTrial(record.reason);
      return;
    }
    if (now.withdrawn !== undefined) return;
    if (record.step !== now.step) {
      now.step = record.step;
      if (now.phase !== 'gathering') enter(now, 'spreading');
    }
    if (record.limit !== now.limit) offer(now, record.limit);
    if (record.outcome === 'paused') {
      enter(now, 'paused');
      now.text = record.reason;
    } else if (now.phase === 'paused') {
      enter(now, now.limit < 0 ? 'gathering' : 'spreading');
    }
  }

  function offer(now: Running, limit: number): void {
    now.limit = limit;
    snapshots.offerTrial(({ id }) => placeOf(id) <= limit);
  }

  function decide(now: Running): void {
    const { record, leads, isVacant } = leadership;
    const isOnRecord = recordOf(now) !== undefined;
    if (now.withdrawn !== undefined) {
      void propose(now, { outcome: 'taken_back', reason: now.withdrawn });
      return;
    }
    const refusal = (leads ? chosen(now) : own.filter(isChosen(now))).find(
      (worker) => worker.refusal !== null,
    );
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
    const { revision, step, limit } = now;
    const before = recordOf(now) ?? { base: '', after: '', outcome: 'running', reason: '' };
    isProposing = true;
    const proposed = leadership.propose({ ...before, revision, step, limit, ...change });
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
      now.text = peers.unknown ?? 'workers are still connecting';
      if (peers.unknown !== undefined || !isGathered(now)) return;
      if (now.limit < 0) {
        take(now, now.step);
        return;
      }
      enter(now, 'spreading');
    }
    const having = chosen(now);
    if (having.length === 0 && peers.unknown === undefined) {
      void pause(now, 'the workers of this step have left');
      return;
    }
    if (shrinkToShare(now)) return;
    const waiting = having.filter(({ state }) => state !== 'in_force');
    if (waiting[0] !== undefined || (peers.unknown !== undefined && now.phase === 'spreading')) {
      enter(now, 'spreading');
      now.text =
        peers.unknown ??
        `waits for ${toCountText(waiting.length, 'worker')}, such as ${waiting[0]?.name}`;
      return;
    }
    if (now.phase === 'spreading') {
      now.baseline = readTraffic();
      enter(now, 'holding');
    }
    hold(now);
  }

  function hold(now: Running): void {
    const { holdMs } = plan.steps[now.step] ?? { holdMs: 0 };
    const judgement = judgeNow(now);
    if (judgement.kind === 'bad') {
      void takeBack(now, judgement.text);
      return;
    }
    const leftMs = now.phaseSinceMs + holdMs - clock.monotonicMs();
    now.text = `is watched for another ${formatDuration(Math.max(0, Math.ceil(leftMs / 1000)) * 1000)}`;
    if (judgement.kind === 'silent') now.text += ` (${judgement.text})`;
    if (leftMs > 0) return;
    if (peers.unknown !== undefined) {
      now.text = peers.unknown;
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

  /** Gives it to the workers of this step; after the last one to all. */
  function take(now: Running, step: number): void {
    const next = plan.steps[step];
    const limit = next && findLimit(workerIds(), next.percent);
    if (limit === undefined) {
      const why =
        next === undefined ? 'all steps are done' : 'there are not two workers to compare';
      log.notice(`Rollout of revision ${toShortId(now.revision)}: ${why}, so everybody gets it`);
      void propose(now, { outcome: 'in_force', reason: '' });
      return;
    }
    now.text = '';
    const wanted = Math.max(limit, now.limit);
    void propose(now, { outcome: 'running', step, limit: wanted, reason: '' }, () => {
      const ids = workerIds();
      const { length } = ids.filter((id) => placeOf(id) <= wanted);
      log.notice(
        `Rollout of revision ${toShortId(now.revision)}: step ${step + 1} of ${plan.steps.length + 1}, ${length} of ${toCountText(ids.length, 'worker')}`,
      );
    });
  }

  /** Workers that connect later may be on this side, but must not exceed the share. */
  function shrinkToShare(now: Running): boolean {
    if (peers.unknown !== undefined) return false;
    const percent = plan.steps[now.step]?.percent ?? 100;
    const ids = workerIds();
    const limit = findLimit(ids, percent);
    if (limit === undefined || limit >= now.limit) return false;
    if (!ids.some((id) => placeOf(id) > limit && placeOf(id) <= now.limit)) return false;
    void propose(now, { limit });
    return true;
  }

  /** Here at once, everywhere when it is on record. */
  function takeBack(now: Running, reason: string, isAutomatic = true): Promise<boolean> {
    const { length } = chosen(now);
    const text = `${reason}; ${toCountText(length, 'worker')} had it`;
    now.withdrawn = text;
    const proposed = propose(now, { outcome: 'taken_back', limit: -1, reason: text }, () => {
      if (isAutomatic) tell(now, `take back revision ${toShortId(now.revision)}: ${text}`);
    });
    offer(now, -1);
    return proposed;
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

  function isGathered({ gatherSinceMs }: Running): boolean {
    const nowMs = clock.monotonicMs();
    const { count, sinceMs } = connected;
    if (nowMs - gatherSinceMs >= gatherMs) return count > 0;
    return count > 1 && nowMs - Math.max(sinceMs, gatherSinceMs) >= gatherQuietMs;
  }

  function noteConnected(): void {
    const count = deps.workers.list().length + peers.workers.length + peers.passed.length;
    if (count !== connected.count) connected = { count, sinceMs: clock.monotonicMs() };
  }

  function judgeNow(now: Running) {
    const having: Traffic[] = [];
    const others: Traffic[] = [];
    const passed = new Set(peers.passed.map(({ id }) => id));
    for (const [id, traffic] of readTraffic()) {
      const before = now.baseline.get(id);
      if (before === undefined) now.baseline.set(id, traffic);
      const has = placeOf(id) <= now.limit && !passed.has(id);
      (has ? having : others).push(since(before ?? traffic, traffic));
    }
    return judge(sum(having), sum(others), plan.overLimitPoints);
  }

  /** A worker that changes its control plane is at two of them for a moment. */
  function readTraffic(): Map<string, Traffic> {
    const all = new Map<string, Traffic>();
    for (const { id, traffic } of [...known(), ...peers.passed]) {
      if (traffic === null) continue;
      const other = all.get(id);
      if (other === undefined || other.decisions < traffic.decisions) all.set(id, traffic);
    }
    return all;
  }

  function known(): WorkerFacts[] {
    return [...own, ...peers.workers];
  }

  function workerIds(): string[] {
    return known().map(({ id }) => id);
  }

  function chosen(now: Running): WorkerFacts[] {
    return known().filter(isChosen(now));
  }

  function toFollowerPhase(now: Running): Phase {
    if (now.limit < 0) return 'gathering';
    return chosen(now).every(({ state }) => state === 'in_force') ? 'holding' : 'spreading';
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
      const { revision, sinceMs, step, limit, phase, text } = running;
      const having = chosen(running);
      return {
        revision,
        sinceMs,
        step: phase === 'gathering' && limit < 0 ? 0 : step + 1,
        steps: plan.steps.length + 1,
        phase,
        text,
        workers: {
          having: having.filter(({ state }) => state === 'in_force').length,
          chosen: having.length,
          others: known().length + peers.passed.length - having.length,
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
    tellPeer(version) {
      if (version !== undefined) leadership.hear(version);
      const { trial, inForce } = snapshots.state();
      return {
        trial: trial?.revision.id ?? null,
        inForce: inForce?.revision.id ?? null,
        limit: running?.limit ?? -1,
        record: leadership.contentId ?? null,
        workers: readOwnFacts(deps),
      };
    },
    stop() {
      for (const end of stops) end();
    },
  };
}

function isChosen({ limit }: Running): (worker: WorkerFacts) => boolean {
  return ({ id }) => placeOf(id) <= limit;
}
