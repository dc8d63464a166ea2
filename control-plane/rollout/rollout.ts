// Brings a new revision to the workers in steps: each step's workers must accept it and do as well as the
// others before the next ones get it; otherwise it is taken back. The snapshot cache starts rollouts and
// serves nodes, judgement.ts compares the workers.
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { toCountText } from '../../shared/count-text.ts';
import { formatDuration } from '../../shared/duration.ts';
import type { Log } from '../../shared/log.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import { toShortId } from '../store/revision.ts';
import { toWorkerState } from '../xds/worker-state.ts';
import type { ConnectedWorker, ConnectedWorkers } from '../xds/workers.ts';
import { judge, since, sum, type Traffic } from './judgement.ts';
import type { RolloutPlan } from './plan.ts';
import type { RecordFile, RolloutRecord } from './record.ts';
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
  readonly workers: { readonly having: number; readonly chosen: number; readonly others: number };
}

/** `gathering`: workers are still connecting. `spreading`: not all of the step have it. `holding`: they
 * have it, and are watched. `silent`: too little traffic to judge, watched for a second hold. */
export type Phase = 'gathering' | 'spreading' | 'holding' | 'silent' | 'paused';

export interface Rollout {
  /** Starts following the snapshots' trials. */
  start(): Promise<void>;
  /** Undefined without a rollout. */
  state(): RolloutState | undefined;
  /** Why it is impossible, for people; undefined when it is done. */
  act(action: RolloutAction, reason: string): string | undefined;
  /** Resolves when the state is on disk. */
  stop(): Promise<void>;
}

export interface RolloutDeps {
  readonly plan: RolloutPlan;
  readonly snapshots: SnapshotCache;
  readonly workers: ConnectedWorkers;
  /** Since that worker's start; undefined when it does not report. */
  readonly trafficOf: (nodeId: string) => Traffic | undefined;
  readonly record: RecordFile;
  readonly log: Log;
  readonly clock: Clock;
}

const lookMs = 1_000;
/** After a start of the control plane the workers connect one by one: a share of the first few would not be
 * representative. */
const gatherMs = 30_000;
const gatherQuietMs = 5_000;

interface Running {
  readonly revision: string;
  readonly sinceMs: number;
  step: number;
  /** Nodes up to this place have it; below 0 for none. */
  limit: number;
  phase: Phase;
  phaseSinceMs: number;
  text: string;
  /** Each worker's counts at the start of the hold. */
  baseline: Map<string, Traffic>;
}

export function createRollout(deps: RolloutDeps): Rollout {
  const { plan, snapshots, workers, trafficOf, record, log, clock } = deps;
  const startedMs = clock.monotonicMs();
  let running: Running | undefined;
  let earlier: RolloutRecord | undefined;
  let connected = { count: 0, sinceMs: startedMs };
  let stops: (() => void)[] = [];
  let isLooking = false;

  function lookOnce(): void {
    // A look changes the snapshots, which triggers another one.
    if (isLooking) return;
    isLooking = true;
    look();
    isLooking = false;
  }

  function look(): void {
    const { length } = workers.list();
    if (length !== connected.count) connected = { count: length, sinceMs: clock.monotonicMs() };
    const trial = snapshots.state().trial;
    if (trial === undefined) {
      running = undefined;
      return;
    }
    if (running?.revision !== trial.revision.id) begin(trial.revision.id, trial.sinceMs);
    if (running === undefined) return;
    const refusal = chosen(running).find(hasRefused);
    if (refusal !== undefined) {
      takeBack(
        running,
        `worker ${nameOf(refusal)} refuses it: ${refusal.nacked?.text.slice(0, 500)}`,
      );
    } else if (running.phase !== 'paused') {
      watch(running);
    }
  }

  function begin(revision: string, sinceMs: number): void {
    const phaseSinceMs = clock.monotonicMs();
    const before = earlier?.revision === revision ? earlier : undefined;
    earlier = undefined;
    if (before?.outcome === 'taken_back') {
      snapshots.takeBackTrial(before.reason);
      return;
    }
    const isPaused = before?.outcome === 'paused';
    running = {
      revision,
      sinceMs,
      step: before?.step ?? 0,
      limit: before?.limit ?? -1,
      phase: isPaused ? 'paused' : before ? 'spreading' : 'gathering',
      phaseSinceMs,
      text: before?.reason ?? '',
      baseline: new Map(),
    };
    if (before === undefined) {
      log.notice(`Rollout of revision ${toShortId(revision)}: begins`);
      return;
    }
    offer(running, running.limit);
    log.notice(
      `Rollout of revision ${toShortId(revision)}: ${isPaused ? 'is paused still' : 'goes on'} at step ${running.step + 1}`,
    );
  }

  function watch(now: Running): void {
    if (now.phase === 'gathering') {
      if (!isGathered()) {
        now.text = 'workers are still connecting';
        return;
      }
      take(now, now.step);
      return;
    }
    const having = chosen(now);
    if (having.length === 0) {
      pause(now, 'the workers of this step have left');
      return;
    }
    shrinkToShare(now);
    const waiting = having.filter((worker) => stateOf(worker) !== 'in_force');
    if (waiting[0] !== undefined) {
      enter(now, 'spreading');
      now.text = `waits for ${toCountText(waiting.length, 'worker')}, such as ${nameOf(waiting[0])}`;
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
      takeBack(now, judgement.text);
      return;
    }
    const leftMs = now.phaseSinceMs + holdMs - clock.monotonicMs();
    now.text = `is watched for another ${formatDuration(Math.max(0, Math.ceil(leftMs / 1000)) * 1000)}`;
    if (judgement.kind === 'silent') now.text += ` (${judgement.text})`;
    if (leftMs > 0) return;
    if (judgement.kind === 'good') {
      advance(now, 'did as well as the others');
    } else if (now.phase === 'holding') {
      enter(now, 'silent');
    } else if (plan.onSilence === 'proceed') {
      advance(now, `could not be judged: ${judgement.text}`);
    } else {
      pause(now, `too little traffic to judge: ${judgement.text}`);
    }
  }

  function advance(now: Running, why: string): void {
    log.notice(`Rollout of revision ${toShortId(now.revision)}: step ${now.step + 1} ${why}`);
    take(now, now.step + 1);
  }

  /** Serves it to the workers of this step; after the last one to all. */
  function take(now: Running, step: number): void {
    const next = plan.steps[step];
    const limit = next && findLimit(workerIds(), next.percent);
    if (limit === undefined) {
      const why =
        next === undefined ? 'all steps are done' : 'there are not two workers to compare';
      log.notice(`Rollout of revision ${toShortId(now.revision)}: ${why}, so everybody gets it`);
      finish(now);
      return;
    }
    now.step = step;
    now.text = '';
    enter(now, 'spreading');
    now.limit = Math.max(limit, now.limit);
    keep(now, 'running');
    offer(now, now.limit);
    const { length } = chosen(now);
    log.notice(
      `Rollout of revision ${toShortId(now.revision)}: step ${step + 1} of ${plan.steps.length + 1}, ${length} of ${toCountText(workerIds().length, 'worker')}`,
    );
  }

  /** Workers that connect later may be on this side, but must not exceed the share. */
  function shrinkToShare(now: Running): void {
    const percent = plan.steps[now.step]?.percent ?? 100;
    const limit = findLimit(workerIds(), percent);
    const allowed =
      limit === undefined ? 0 : workerIds().filter((id) => placeOf(id) <= limit).length;
    if (limit !== undefined && chosen(now).length > allowed) offer(now, limit);
  }

  function offer(now: Running, limit: number): void {
    now.limit = limit;
    snapshots.offerTrial(({ id }) => placeOf(id) <= limit);
  }

  function finish(now: Running): void {
    keep(now, 'in_force');
    running = undefined;
    snapshots.endTrial();
  }

  function takeBack(now: Running, reason: string): void {
    const { length } = chosen(now);
    running = undefined;
    // The workers first, then the record: if killed between the two, the next process finds the same
    // state.
    snapshots.takeBackTrial(`${reason}; ${toCountText(length, 'worker')} had it`);
    keep(now, 'taken_back', reason);
  }

  function pause(now: Running, reason: string): void {
    enter(now, 'paused');
    now.text = reason;
    keep(now, 'paused', reason);
    log.warning(
      `Rollout of revision ${toShortId(now.revision)}: paused (${reason}); 'rollout resume', 'promote' or 'abort' goes on`,
    );
  }

  function keep(now: Running, outcome: RolloutRecord['outcome'], reason = ''): void {
    const { revision, step, limit } = now;
    record.keep({ revision, outcome, step, limit, reason });
  }

  function enter(now: Running, phase: Phase): void {
    if (now.phase === phase) return;
    now.phase = phase;
    now.phaseSinceMs = clock.monotonicMs();
  }

  function isGathered(): boolean {
    const nowMs = clock.monotonicMs();
    const { count, sinceMs } = connected;
    if (nowMs - startedMs >= gatherMs) return count > 0;
    return count > 1 && nowMs - sinceMs >= gatherQuietMs;
  }

  function judgeNow(now: Running) {
    const having: Traffic[] = [];
    const others: Traffic[] = [];
    for (const [id, traffic] of readTraffic()) {
      const counted = since(now.baseline.get(id), traffic);
      (placeOf(id) <= now.limit ? having : others).push(counted);
    }
    return judge(sum(having), sum(others), plan.overLimitPoints);
  }

  function readTraffic(): Map<string, Traffic> {
    const all = new Map<string, Traffic>();
    for (const id of workerIds()) {
      const traffic = trafficOf(id);
      if (traffic !== undefined) all.set(id, traffic);
    }
    return all;
  }

  function workerIds(): string[] {
    return workers.list().map(({ node }) => node.id);
  }

  function chosen({ limit }: Running): ConnectedWorker[] {
    return workers.list().filter(({ node }) => placeOf(node.id) <= limit);
  }

  function stateOf(worker: ConnectedWorker): string {
    return toWorkerState(worker, snapshots.current(worker.node)).state;
  }

  function hasRefused(worker: ConnectedWorker): boolean {
    const { state, expected } = toWorkerState(worker, snapshots.current(worker.node));
    return state === 'refused' && worker.nacked?.version === expected;
  }

  return {
    async start() {
      earlier = await record.read();
      stops = [snapshots.onChange(lookOnce), repeatAfter(clock, lookMs, lookOnce)];
      lookOnce();
    },
    state() {
      if (running === undefined) return undefined;
      const { revision, sinceMs, step, phase, text } = running;
      const having = chosen(running);
      return {
        revision,
        sinceMs,
        step: phase === 'gathering' ? 0 : step + 1,
        steps: plan.steps.length + 1,
        phase,
        text,
        workers: {
          having: having.filter((worker) => stateOf(worker) === 'in_force').length,
          chosen: having.length,
          others: workers.list().length - having.length,
        },
      };
    },
    act(action, reason) {
      if (running === undefined) return 'no rollout is under way';
      if (action === 'resume' && running.phase !== 'paused') return 'the rollout is not paused';
      if (action === 'pause' && running.phase === 'paused') return 'the rollout is paused already';
      if (action === 'pause') pause(running, reason);
      else if (action === 'promote') finish(running);
      else if (action === 'abort') takeBack(running, reason);
      else take(running, running.step);
      return undefined;
    },
    async stop() {
      for (const end of stops) end();
      await record.settled();
    },
  };
}

function nameOf({ node, address }: ConnectedWorker): string {
  return node.id === '' ? address : `'${node.id.slice(0, 200)}'`;
}
