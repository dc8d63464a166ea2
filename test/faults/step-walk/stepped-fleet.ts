// A fleet that consists only of its states: control planes whose three pure steps (what is on record, what is served,
// what is decided) process one event after another, and workers. Each effect becomes a task, and the caller chooses
// which task is done next, so that any order of events, and an end between any two effects, can be tested.
import { Tally } from '../../../control-plane/server/fleet/tally.ts';
import { toTotals } from '../../../control-plane/server/fleet/worker-figures.ts';
import type { OwnRecord } from '../../../control-plane/server/record/own-text.ts';
import {
  openRolloutOf,
  parseRecord,
  type RolloutRecord,
} from '../../../control-plane/server/record/record.ts';
import {
  type Job,
  type LeaderTiming,
  type RecordEffect,
  type RecordEvent,
  type RecordState,
  startRecord,
  toRevisionMemory,
} from '../../../control-plane/server/record/record-state.ts';
import { step as stepRecord } from '../../../control-plane/server/record/record-step.ts';
import { type RolloutFacts, readOwnFacts } from '../../../control-plane/server/rollout/facts.ts';
import {
  type FleetEffect,
  type FleetEvent,
  type FleetState,
  startFleet,
  toTakenBack,
  type Write,
} from '../../../control-plane/server/rollout/fleet-state.ts';
import { step as stepFleet } from '../../../control-plane/server/rollout/fleet-step.ts';
import { isPast } from '../../../control-plane/server/rollout/following.ts';
import { type BuildOutcome, buildSnapshots } from '../../../control-plane/server/snapshot/build.ts';
import { compareFor, currentOf, groupOf } from '../../../control-plane/server/snapshot/served.ts';
import {
  type ServingEffect,
  type ServingEvent,
  type ServingState,
  startServing,
  step as stepServing,
} from '../../../control-plane/server/snapshot/serving-state.ts';
import type { NodeIdentity, Snapshot } from '../../../control-plane/server/snapshot/snapshot.ts';
import { toSnapshotState } from '../../../control-plane/server/snapshot/snapshot-state.ts';
import type { Revision } from '../../../control-plane/server/store/revision.ts';
import type { SwapResult, VersionedText } from '../../../control-plane/server/store/shared-text.ts';
import { markUnused, type VanishedWorker } from '../../../control-plane/server/xds/workers.ts';
import { instanceKey } from '../../../shared/instance-key.ts';
import type { TotalsMessage } from '../../../shared/wire/fleet-messages.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';

export type Reach = 'fine' | 'denied' | 'away';

/** The effect of a content on the workers that have it. */
export interface Effect {
  readonly isRefused?: boolean;
  readonly isDeadly?: boolean;
  /** Shares of the decisions. */
  readonly errors?: number;
  readonly overLimit?: number;
}

export interface SteppedWorker {
  readonly node: NodeIdentity;
  readonly instance: string;
  plane: SteppedPlane | undefined;
  notified: Snapshot | undefined;
  has: Snapshot | undefined;
  nacked: string | undefined;
  ackedAtMs: number;
  /** How it responds to what it is sent. */
  answer: 'take' | 'refuse' | 'ignore';
  /** Reported instead of the real effect of its rules. */
  lies: Effect | undefined;
  /** Whether it reports nothing. */
  isUnlinked: boolean;
  totals: TotalsMessage;
  tally: Tally | undefined;
}

/** A pending effect. */
export interface Task {
  readonly plane: SteppedPlane;
  /** Human-readable. */
  readonly what: string;
  readonly perform: () => void;
}

export interface SteppedPlane {
  readonly name: string;
  isUp: boolean;
  isStanding: boolean;
  isCutOff: boolean;
  /** Whether it does not notice new revisions. */
  isLate: boolean;
  reach: Reach;
  record: RecordState;
  serving: ServingState;
  fleet: FleetState | undefined;
  vanished: VanishedWorker[];
  freshId: string;
  /** In its state directory. */
  own: OwnRecord | undefined;
  lastGood: Revision | undefined;
  /** By job of the record: the callback that waits for it. */
  readonly writes: Map<number, (isWritten: boolean) => void>;
  lastJob: number;
  /** By number: the callback of the user who waits for the answer. */
  readonly asked: Map<number, (problem: string | undefined) => void>;
  lastAsked: number;
}

export interface SteppedFleetOptions {
  readonly plan: string;
  readonly planes: readonly string[];
  readonly workers: number;
  readonly drawId: () => string;
}

const timing: LeaderTiming = { poll: 1_000, renew: 2_000, term: 8_000, readAgain: 1_000 };
const encode = loadProtos().rateLimitConfig.serialize;
const outcomes = new Map<string, BuildOutcome>();

/** For small revisions only, each built once. */
function build({ files, problems }: Revision): BuildOutcome {
  const key = JSON.stringify(files);
  const options = { mergeDomains: false, maxResponseBytes: 4 * 1024 * 1024 };
  const outcome = outcomes.get(key) ?? buildSnapshots({ files, problems }, options, { encode });
  outcomes.set(key, outcome);
  return outcome;
}

export class SteppedFleet {
  readonly options: SteppedFleetOptions;
  readonly planes: readonly SteppedPlane[];
  readonly workers: SteppedWorker[] = [];
  /** By content, as returned by `numberOf`. */
  readonly effects = new Map<number, Effect>();
  /** The newest last. */
  readonly revisions: Revision[];
  readonly dropped = new Set<string>();
  /** Any of them may be done next. */
  tasks: Task[] = [];
  shared: VersionedText | undefined;
  nowMs = 0;
  wallMs = 1_000_000_000;
  onRecord: (before: RolloutRecord | undefined, now: RolloutRecord) => void = () => {};
  /** The text before the last write. */
  #before: string | undefined;
  #writes = 0;
  #series = 0;

  constructor(options: SteppedFleetOptions, first: Revision) {
    this.options = options;
    this.revisions = [first];
    this.planes = options.planes.map((name) => this.#toPlane(name));
  }

  get newest(): Revision {
    return this.revisions.at(-1) as Revision;
  }

  get record(): RolloutRecord | undefined {
    const read = this.shared && parseRecord(this.shared.text);
    return read?.ok ? read.record : undefined;
  }

  // Processes.

  start(plane: SteppedPlane, isFresh: boolean): void {
    const { name, own, lastGood } = plane;
    Object.assign(plane, this.#toPlane(name), {
      own: isFresh ? undefined : own,
      lastGood: isFresh ? undefined : lastGood,
      ...{ isUp: true, reach: plane.reach, isCutOff: plane.isCutOff, isLate: plane.isLate },
    });
    this.#want(plane, { kind: 'start' }, () => this.#startServing(plane));
  }

  /** Pending effects are lost. */
  kill(plane: SteppedPlane): void {
    plane.isUp = false;
    plane.isStanding = false;
    plane.fleet = undefined;
    this.tasks = this.tasks.filter((each) => each.plane !== plane);
    for (const worker of this.workersOf(plane)) worker.plane = undefined;
  }

  /** The control plane ends when the record allows it, or cannot be written. */
  stop(plane: SteppedPlane): void {
    if (plane.fleet === undefined) {
      this.kill(plane);
      return;
    }
    this.happen(plane, { kind: 'stop' });
    this.#want(plane, { kind: 'sign', hasLeft: true }, () => this.kill(plane));
  }

  // What happens.

  publish(revision: Revision): void {
    this.revisions.push(revision);
    for (const plane of this.planes) this.#find(plane);
  }

  act(
    plane: SteppedPlane,
    action: Extract<FleetEvent, { kind: 'act' }>['action'] | 'undo' | 'approve',
    answer: (problem: string | undefined) => void,
  ): void {
    const request = { reason: `${action} by ada`, by: 'ada' };
    if (action === 'undo') {
      this.happen(plane, { kind: 'undo', ...request });
      return;
    }
    const asked = ++plane.lastAsked;
    plane.asked.set(asked, answer);
    const revision = plane.serving.newest?.revision.id ?? '';
    const contentOfStep = undefined;
    this.happen(
      plane,
      action === 'approve'
        ? { kind: 'approve', revision, contentOfStep, asked, ...request }
        : { kind: 'act', action, asked, ...request },
    );
  }

  /** One second of every control plane that is not stalled, and of the workers. */
  pass(): void {
    this.nowMs += 1_000;
    this.wallMs += 1_000;
    for (const worker of this.workers) this.#count(worker);
    for (const plane of this.planes) {
      if (plane.isStanding || plane.fleet === undefined) continue;
      this.#find(plane);
      this.happen(plane, { kind: 'check', mayDiffer: true });
    }
  }

  addWorker(id: string, plane: SteppedPlane | undefined): SteppedWorker {
    const instance = this.options.drawId();
    const worker: SteppedWorker = {
      node: { id, cluster: '', metadata: new Map([[instanceKey, instance]]) },
      ...{ instance, plane: undefined, notified: undefined, has: undefined, nacked: undefined },
      ...{ ackedAtMs: 0, answer: 'take', lies: undefined, isUnlinked: false },
      ...{ totals: toTotals(undefined), tally: undefined },
    };
    this.workers.push(worker);
    if (plane !== undefined) this.connect(worker, plane);
    return worker;
  }

  connect(worker: SteppedWorker, plane: SteppedPlane): void {
    Object.assign(worker, { plane, notified: worker.has, nacked: undefined, tally: undefined });
    plane.vanished = plane.vanished.filter(({ instance }) => instance !== worker.instance);
    this.#refresh(worker);
  }

  disconnect(worker: SteppedWorker, how: 'goodbye' | 'broken'): void {
    const { plane, node, instance, notified, has, nacked } = worker;
    worker.plane = undefined;
    if (plane === undefined || how === 'goodbye') return;
    plane.vanished.push({
      ...{ node, instance, address: instance, goneAtMs: this.nowMs },
      sent: notified && { version: notified.version, atMs: 0 },
      acked: has && { version: has.version, atMs: 0 },
      nacked: nacked === undefined ? undefined : { version: nacked, text: 'no', atMs: 0 },
    });
  }

  /** Accepts what it is sent, refuses it, or is killed by it. */
  answer(worker: SteppedWorker): void {
    const { notified, has, plane, answer } = worker;
    if (plane === undefined || notified === undefined || notified === has || answer === 'ignore')
      return;
    const { isDeadly, isRefused } = this.effects.get(numberOf(notified)) ?? {};
    if (isDeadly) {
      this.disconnect(worker, 'broken');
      this.workers.splice(this.workers.indexOf(worker), 1);
      this.addWorker(worker.node.id, plane);
    } else if (isRefused || answer === 'refuse') worker.nacked = notified.version;
    else Object.assign(worker, { has: notified, nacked: undefined, ackedAtMs: this.nowMs });
  }

  workersOf(plane: SteppedPlane): SteppedWorker[] {
    return this.workers.filter((each) => each.plane === plane);
  }

  /** As in the file that workers get: 0 without rules. */
  readonly contentOfRevision = (id: string): number => {
    const found = this.revisions.find((each) => each.id === id);
    const [, number = '0'] = /revision-(\d+)/.exec(found?.files[0]?.text ?? '') ?? [];
    return Number(number);
  };

  snapshotsOf(plane: SteppedPlane) {
    return {
      state: () => this.stateOf(plane),
      current: (node: NodeIdentity) => currentOf(plane.serving, node),
      compare: (node: NodeIdentity) => compareFor(plane.serving, node),
      groupOf: (node: NodeIdentity) => groupOf(plane.serving, node),
      lostRules: () => new Map(),
    };
  }

  stateOf({ serving, reach }: SteppedPlane) {
    const failingSinceMs = reach === 'away' ? 0 : undefined;
    const since = { lastSuccessMs: 0, failingSinceMs, lastError: undefined, revision: undefined };
    return toSnapshotState(serving, { reachable: failingSinceMs === undefined, ...since });
  }

  // One event of one control plane, and its effects in order.

  happen(plane: SteppedPlane, event: FleetEvent): void {
    if (plane.fleet === undefined) return;
    const { state, effects } = stepFleet(plane.fleet, event, {
      ...{ record: plane.record, snapshots: this.stateOf(plane), freshId: plane.freshId },
      ...{ monotonicMs: this.nowMs, wallMs: this.wallMs },
    });
    plane.fleet = state;
    for (const effect of effects) this.#perform(plane, effect);
  }

  #serve(plane: SteppedPlane, event: ServingEvent): void {
    const facts = { memory: toRevisionMemory(plane.record), wallMs: this.wallMs };
    const { state, effects } = stepServing(plane.serving, event, facts);
    plane.serving = state;
    for (const effect of effects) this.#performServing(plane, effect);
  }

  #record(plane: SteppedPlane, event: RecordEvent): void {
    const now = { monotonicMs: this.nowMs, wallMs: this.wallMs };
    const { state, effects } = stepRecord(plane.record, event, now);
    plane.record = state;
    for (const effect of effects) this.#performRecord(plane, effect);
  }

  #perform(plane: SteppedPlane, effect: FleetEffect): void {
    const later = (perform: () => void) => this.#later(plane, effect.kind, perform);
    switch (effect.kind) {
      case 'log':
      case 'audit':
        break;
      case 'poll_store':
        this.#find(plane);
        break;
      case 'followed': {
        const { running } = plane.fleet?.following ?? {};
        const own = running && this.#readFacts(plane);
        this.happen(plane, { kind: 'followed', workers: this.list(plane), own, holdOther: false });
        break;
      }
      case 'tick':
      case 'noticed':
      case 'stored_locally':
        this.#record(plane, effect);
        break;
      case 'answer':
        plane.asked.get(effect.asked)?.(effect.problem);
        plane.asked.delete(effect.asked);
        break;
      case 'write':
        this.#write(plane, effect.write);
        break;
      case 'ask_peers': {
        const { contentId, undoes } = effect;
        const askedAtMs = this.nowMs;
        later(() => {
          const peers = this.planes.filter((each) => each !== plane);
          const answers = peers.map((each) => this.#ask(plane, each, contentId, undoes));
          this.happen(plane, { kind: 'answered', askedAtMs, contentId, answers });
        });
        break;
      }
      case 'find_trial':
        later(() => {
          if (plane.reach === 'away') return;
          const { open } = effect;
          const newest = this.stateOf(plane).newest?.revision.id;
          if (newest === undefined) return;
          const isGone = isPast(open, this.stateOf(plane), this.#isIncluded(open.revision, newest));
          const revision = isGone ? undefined : this.#read(open.revision);
          const found = { open, newest, isPast: isGone, revision };
          this.happen(plane, { kind: 'found_trial', found });
        });
        break;
      case 'find_in_force':
        later(() => {
          if (plane.reach === 'away') return;
          const { wanted, before } = effect;
          const found = { wanted, before, revision: this.#read(wanted.revision) };
          this.happen(plane, { kind: 'found_in_force', found });
        });
        break;
      case 'locate':
        later(() => {
          if (plane.reach === 'away') return;
          const { revision, newest } = effect;
          const isNewest = plane.serving.newest?.revision.id === newest;
          const isIncluded =
            this.#isIncluded(revision, newest) || this.#isIncluded(newest, revision);
          const located = { kind: 'located', revision, newest } as const;
          this.happen(plane, { ...located, isIncluded: !isNewest || isIncluded });
        });
        break;
      default:
        this.#serve(plane, effect);
    }
  }

  #performServing(plane: SteppedPlane, effect: ServingEffect): void {
    switch (effect.kind) {
      case 'build': {
        const { purpose, revision } = effect;
        this.#serve(plane, { kind: 'built', purpose, revision, outcome: build(revision) });
        break;
      }
      case 'judge':
        throw new Error('small revisions are judged at once');
      case 'refresh':
        for (const worker of this.workersOf(plane)) this.#refresh(worker);
        this.happen(plane, { kind: 'check', mayDiffer: false });
        break;
      case 'newest':
        this.happen(plane, { kind: 'check', mayDiffer: false });
        break;
      case 'keep':
        plane.lastGood = effect.revision;
        break;
      case 'log':
    }
  }

  #performRecord(plane: SteppedPlane, effect: RecordEffect): void {
    const later = (perform: () => RecordEvent) =>
      this.#later(plane, `record ${effect.kind}`, () => this.#record(plane, perform()));
    const failed = { kind: 'failed', reason: 'no route to it' } as const;
    switch (effect.kind) {
      case 'log':
      case 'outcome':
      case 'restore_own':
        break;
      case 'store_own':
        plane.own = effect.stored;
        break;
      case 'changed':
        this.happen(plane, { kind: 'check', mayDiffer: true });
        break;
      case 'done':
        plane.writes.get(effect.job)?.(effect.isWritten);
        plane.writes.delete(effect.job);
        break;
      case 'next':
        this.#record(plane, { kind: 'next' });
        break;
      case 'read_own':
        later(() => ({ kind: 'own_read', stored: plane.own }));
        break;
      case 'read': {
        const startedMs = this.nowMs;
        later(() =>
          plane.reach === 'away' ? failed : { kind: 'read', startedMs, found: this.shared },
        );
        break;
      }
      case 'swap': {
        const { before, text } = effect;
        // The text is on record, but the writer does not know that yet.
        this.#later(plane, 'record swap', () => {
          const result = this.#swap(plane, before, text);
          this.#later(plane, 'record swapped', () =>
            this.#record(plane, result ? { kind: 'swapped', result } : failed),
          );
        });
        break;
      }
      case 'set_aside':
      case 'set_own_aside':
        throw new Error('nothing is damaged');
    }
  }

  #swap(plane: SteppedPlane, before: string | undefined, text: string): SwapResult | undefined {
    if (plane.reach === 'away') return undefined;
    if (plane.reach === 'denied') return { kind: 'denied', reason: 'may only read' };
    if (before !== this.shared?.version) return { kind: 'stale' };
    const known = this.record;
    this.#before = this.shared?.text;
    this.shared = { version: String(++this.#writes), text };
    const { record } = this;
    if (record !== undefined) this.onRecord(known, record);
    return { kind: 'written', version: this.shared.version };
  }

  /** Loses a write, as a failover of an engine does, if it was about the same rollout and every control plane knows it;
   * otherwise returns false. */
  loseWrite(): boolean {
    const { version } = this.shared ?? {};
    const isKnown = this.planes.every(
      ({ fleet, record }) => fleet !== undefined && record.known.version === version,
    );
    if (!isKnown) return false;
    const before = this.#before === undefined ? undefined : parseRecord(this.#before);
    const id = before?.ok ? before.record.rollout?.id : undefined;
    if (this.#before === undefined || id === undefined || id !== this.record?.rollout?.id) {
      return false;
    }
    this.shared = { version: String(++this.#writes), text: this.#before };
    return true;
  }

  #later(plane: SteppedPlane, what: string, perform: () => void): void {
    this.tasks.push({ plane, what, perform });
  }

  #want(
    plane: SteppedPlane,
    wanted: { readonly kind: 'start' } | { readonly kind: 'sign'; readonly hasLeft: boolean },
    andThen: () => void,
  ): void {
    const id = ++plane.lastJob;
    plane.writes.set(id, andThen);
    this.#record(plane, { kind: 'wanted', job: { ...wanted, id } });
  }

  #write(plane: SteppedPlane, write: Write): void {
    plane.freshId = this.options.drawId();
    const job: Job = { id: ++plane.lastJob, kind: 'write', change: write.change, attempt: 1 };
    plane.writes.set(job.id, (isWritten) =>
      this.happen(plane, { kind: 'written', write, isWritten }),
    );
    this.#record(plane, { kind: 'wanted', job });
  }

  /** The record has been read, or cannot be. */
  #startServing(plane: SteppedPlane): void {
    const memory = toRevisionMemory(plane.record);
    const inForce = memory.inForce && this.#read(memory.inForce.revision);
    const stored = inForce ?? plane.lastGood;
    const outcome = stored && build(stored);
    const restore = (why: string) =>
      stored && outcome && this.#serve(plane, { kind: 'restored', revision: stored, outcome, why });
    if (stored && outcome?.ok) {
      this.#serve(plane, { kind: 'started', before: { revision: stored, built: outcome.built } });
    }
    const isAway = plane.reach === 'away';
    if (!isAway && stored !== undefined && stored.id !== this.newest.id && memory.rollsOut) {
      restore('it was not in force yet');
    }
    if (!isAway) this.#serve(plane, { kind: 'found', revision: this.newest });
    if (plane.serving.inForce === undefined && plane.serving.trial === undefined) restore('away');
    this.#serve(plane, { kind: 'started', before: undefined });
    const options = { reportsOutcomes: false, hasPeers: this.planes.length > 1 };
    plane.fleet = startFleet(options, { record: plane.record, monotonicMs: this.nowMs });
    this.happen(plane, { kind: 'check', mayDiffer: true });
  }

  #find(plane: SteppedPlane): void {
    const isAble = plane.fleet !== undefined && !plane.isStanding && !plane.isLate;
    if (!isAble || plane.reach === 'away') return;
    if (plane.serving.newest?.revision !== this.newest) {
      this.#serve(plane, { kind: 'found', revision: this.newest });
    }
  }

  #read(id: string): Revision | undefined {
    return this.revisions.findLast((each) => each.id === id);
  }

  #isIncluded(id: string, newest: string): boolean {
    const at = this.revisions.findIndex((each) => each.id === id);
    const newestAt = this.revisions.findLastIndex((each) => each.id === newest);
    return at !== -1 && at <= newestAt && !this.dropped.has(id);
  }

  /** Like the `askPeers` of `RolloutDeps`, for one peer. */
  #ask(plane: SteppedPlane, peer: SteppedPlane, record: string, undoes: boolean) {
    const url = peer.name;
    const isAway = plane.isCutOff || peer.isCutOff || peer.isStanding || peer.fleet === undefined;
    if (isAway) return { url, error: 'refused', last: undefined };
    this.#record(peer, { kind: 'noticed', contentId: record });
    this.happen(peer, { kind: 'asked', undoes });
    const { known } = peer.record;
    const { serves = null, lacking } = peer.fleet?.following ?? {};
    const open = openRolloutOf(known.record);
    const value: RolloutFacts = {
      ...{ record: known.contentId, serves, lacks: lacking !== undefined && lacking === open?.id },
      takenBack: peer.fleet === undefined ? null : toTakenBack(peer.fleet, known.record),
      ...this.#readFacts(peer),
    };
    return { url, value };
  }

  #readFacts(plane: SteppedPlane): Pick<RolloutFacts, 'workers' | 'gone'> {
    const workers = { list: () => this.list(plane), vanished: () => plane.vanished };
    const snapshots = this.snapshotsOf(plane);
    const readCounted = () => this.#counted(plane);
    const { running } = plane.fleet?.following ?? {};
    return readOwnFacts({ workers, snapshots, readCounted }, running, this.nowMs);
  }

  list(plane: SteppedPlane) {
    const listed = this.workersOf(plane).map(
      ({ node, instance, notified, has, nacked, ackedAtMs }) => ({
        ...{ node, instance, address: instance, mode: 'sotw' as const, sinceMs: 0 },
        sent: notified && { version: notified.version, atMs: 0 },
        acked: has && { version: has.version, atMs: 0, sinceMs: ackedAtMs },
        nacked: nacked === undefined ? undefined : { version: nacked, text: 'no', atMs: 0 },
        wantedVersion: ({ version }: Snapshot) => version,
      }),
    );
    return markUnused(listed, this.#counted(plane), this.nowMs);
  }

  #counted(plane: SteppedPlane) {
    const known = this.workersOf(plane).flatMap(({ instance, tally }) =>
      tally?.counted ? [[instance, tally.counted] as const] : [],
    );
    return new Map(known);
  }

  #refresh(worker: SteppedWorker): void {
    const { plane, notified } = worker;
    if (plane === undefined || plane.isStanding || plane.fleet === undefined) return;
    const current = currentOf(plane.serving, worker.node);
    if (current !== undefined && current.version !== notified?.version) worker.notified = current;
  }

  #count(worker: SteppedWorker): void {
    const { has, totals, node, isUnlinked } = worker;
    if (isUnlinked) worker.tally = undefined;
    if (worker.plane === undefined || has === undefined || isUnlinked) return;
    const { errors = 0, overLimit = 0 } = worker.lies ?? this.effects.get(numberOf(has)) ?? {};
    worker.totals = {
      ...totals,
      decisions: totals.decisions + 200,
      errors: totals.errors + 200 * errors,
      overLimit: totals.overLimit + 200 * overLimit,
    };
    worker.tally ??= new Tally({
      ...{ nodeId: node.id, newSeries: () => String(++this.#series), mostRules: () => 0 },
      toOwned: (name) => name,
    });
    const report = { version: has.version, totals: worker.totals, seconds: 1, rules: [] };
    const rest = { store: null, otherRuleCount: 0, unmatched: [] };
    worker.tally.add({ ...report, ...rest }, this.nowMs);
  }

  #toPlane(name: string): SteppedPlane {
    const options = {
      ...{
        id: this.options.drawId(),
        name,
        location: 'the shared record',
        ownLocation: 'the own record',
      },
      ...{ steps: this.options.plan, timing },
    };
    const now = { monotonicMs: this.nowMs, wallMs: this.wallMs };
    const serving = { allowsRemoval: false, knowsMakers: false, folder: '', store: 'a store' };
    return {
      ...{ name, isUp: false, isStanding: false, isCutOff: false, isLate: false },
      ...{ reach: 'fine', record: startRecord(options, now) },
      serving: startServing(serving),
      ...{ fleet: undefined, vanished: [], freshId: this.options.drawId() },
      ...{ own: undefined, lastGood: undefined, writes: new Map(), lastJob: 0 },
      ...{ asked: new Map(), lastAsked: 0 },
    };
  }
}

export function contentOf(snapshot: Snapshot | undefined): number | undefined {
  return snapshot && numberOf(snapshot);
}

/** 0 without rules. */
export function numberOf(snapshot: Snapshot): number {
  for (const name of snapshot.resources.keys()) {
    const [, number] = /^revision-(\d+)$/.exec(name) ?? [];
    if (number !== undefined) return Number(number);
  }
  return 0;
}
