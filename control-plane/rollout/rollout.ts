// Brings a new revision to the workers in steps: each step's workers must accept it and do as well as the others
// before the next ones get it; otherwise it is taken back. In the loop of record/bookkeeping.ts following.ts serves the
// revisions on record, and decide.ts decides on the next step. A decision changes nothing but the record; all control
// planes follow that, the leader too (behaviour: record-before-workers). Without steps only that loop runs.
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Counted } from '../fleet/tally.ts';
import { Bookkeeping, type MemoryState } from '../record/bookkeeping.ts';
import {
  heldBackOf,
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  takenBackOf,
} from '../record/record.ts';
import type { RecordKeeper } from '../record/record-keeper.ts';
import type { ChangeRecord } from '../record/record-state.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import { toShortId } from '../store/revision.ts';
import type { ConfigStore } from '../store/store.ts';
import { toWorkerName } from '../xds/worker-name.ts';
import type { ConnectedWorkers } from '../xds/workers.ts';
import { type RolloutAction, withAction, withBegun, withChange, withTakenBack } from './changes.ts';
import { type Change, type Decision, decide, foreseeIndivisible } from './decide.ts';
import { noPeers, type PeerFacts, type RolloutFacts, readOwnFacts } from './facts.ts';
import { gatherAgain, isGathered, startWatch, watch, watchCount } from './fleet-watch.ts';
import { createFollowing, type Running } from './following.ts';
import { type AskPeers, createPeerWatch, type PeerWatch } from './peer-watch.ts';
import type { RolloutPlan } from './plan.ts';
import { isGiven } from './pools.ts';
import type { RolloutState } from './rollout-state.ts';
import type { View } from './view.ts';

/** An action of the control plane by itself, for the audit log. */
export interface RolloutEvent {
  readonly revision: string;
  /** Such as `take back revision 0123456789ab: ...`. */
  readonly what: string;
}

export interface Rollout {
  /** The steps of a revision, where no node group has its own; undefined where revisions reach the workers at once. */
  readonly plan: RolloutPlan | undefined;
  /** Starts following the snapshots and the record, which have been read. */
  start(): void;
  /** Undefined without a rollout. */
  state(): RolloutState | undefined;
  /** Why the next revision could not reach the workers in steps, for people; undefined when it could. */
  warning(): string | undefined;
  /** Where what has to be remembered is, and why it may get lost. */
  memory(): MemoryState;
  /** Why it was not done, for people; undefined when it was. `by`: who wants it. */
  act(action: RolloutAction, reason: string, by: string): Promise<string | undefined>;
  /** Lets a revision through that waits for somebody: why it was not done, or undefined. */
  approve(revision: string, reason: string, by: string): Promise<string | undefined>;
  /** Whether everybody had this content, lately: to go back to it is an undo. */
  wasInForce(content: string): boolean;
  /** Before something that undoes the revision on trial is written to the store, which may take long: it leaves the
   * workers at once, and that is on record when it can be written. */
  undo(reason: string, by: string): void;
  /** For the control plane that leads, which knows the record with this content. */
  tellPeer(contentId: string | undefined): RolloutFacts;
  /** Decides nothing any more, and lets another control plane lead. Bounded in time. */
  stop(): Promise<void>;
}

export interface RolloutDeps {
  /** Undefined: every worker gets a new revision at once. */
  readonly plan: RolloutPlan | undefined;
  /** Whether people are told what becomes of revisions. */
  readonly isTold: boolean;
  readonly snapshots: SnapshotCache;
  readonly workers: ConnectedWorkers;
  /** By instance, of the workers that report and can be believed. */
  readonly readCounted: () => ReadonlyMap<string, Counted>;
  readonly keeper: RecordKeeper;
  /** Undefined without peers. */
  readonly askPeers: AskPeers | undefined;
  readonly store: Pick<ConfigStore, 'trigger' | 'readRevision' | 'locate'>;
  /** Of a rollout, unknown to workers and never the same twice. */
  readonly drawId: () => string;
  readonly onEvent: (event: RolloutEvent) => void;
  readonly log: Log;
  readonly clock: Clock;
}

/** Between two looks at the store while a revision is on trial, however seldom it is looked at else. */
const storeMs = 5_000;
/** A leader that has neither asked nor written for so long may be gone. */
const ledMs = 5_000;

export function createRollout(deps: RolloutDeps): Rollout {
  const { plan, isTold, snapshots, keeper, clock } = deps;
  const peerWatch = createPeerWatch(deps.askPeers, (id) => keeper.noteNews(id), clock);
  const bookkeeping = new Bookkeeping({
    ...{ rollsOut: plan !== undefined, isTold, snapshots, keeper, clock },
    askPeers: deps.askPeers && peerWatch.ask,
  });
  return plan === undefined
    ? createAtOnce(deps, bookkeeping)
    : createSteps({ ...deps, plan }, bookkeeping, peerWatch);
}

/** Everybody gets a revision at once: there is nothing to decide. */
function createAtOnce(deps: RolloutDeps, bookkeeping: Bookkeeping): Rollout {
  const { keeper, clock } = deps;
  return {
    plan: undefined,
    start: () => bookkeeping.start(),
    state: () => undefined,
    warning: () => undefined,
    memory: () => bookkeeping.memory(),
    act: async () => 'no rollout is under way',
    approve: (revision, reason, by) => bookkeeping.approveNewest(revision, reason, by),
    wasInForce: (content) => keeper.wasInForce(content),
    undo(reason, by) {
      const open = openRolloutOf(keeper.record);
      if (open !== undefined) void bookkeeping.abort(open, reason, by);
    },
    tellPeer(contentId) {
      if (contentId !== undefined) keeper.noteNews(contentId);
      const facts = readOwnFacts(deps, undefined, clock.monotonicMs());
      return { record: keeper.contentId, serves: null, lacks: false, ...facts };
    },
    stop: () => bookkeeping.stop(),
  };
}

function createSteps(
  deps: RolloutDeps & { readonly plan: RolloutPlan },
  bookkeeping: Bookkeeping,
  peerWatch: PeerWatch,
): Rollout {
  const { plan, snapshots, keeper, log, clock } = deps;
  let watched = startWatch(clock.monotonicMs());
  const following = createFollowing({ ...deps, bookkeeping });
  let view: View | undefined;
  let decision: Omit<Decision, 'change'> = { phase: 'gathering', text: '' };
  let ledAtMs = clock.monotonicMs();
  let ledBy = keeper.contentId;
  let storeAtMs = clock.monotonicMs();
  let hasForeseen = false;

  function decideNow(): void {
    const { trial } = snapshots.state();
    const { running } = following;
    if (running !== undefined) decideOn(running);
    else lookAhead();
    if (trial !== undefined) lookAtStore();
  }

  /** An undo does not wait for the next look that is due. */
  function lookAtStore(): void {
    const nowMs = clock.monotonicMs();
    if (nowMs - storeAtMs < storeMs) return;
    storeAtMs = nowMs;
    void deps.store.trigger();
  }

  /** Nothing is rolled out. */
  function lookAhead(): void {
    const nowMs = clock.monotonicMs();
    watched = watchCount(watched, deps.workers.list().length, nowMs);
    if (hasForeseen || !isGathered(watched, nowMs)) return;
    hasForeseen = true;
    const text = foresee();
    if (text !== undefined) log.warning(`Rollout: ${text}`);
  }

  /** Before there is a revision to roll out: peers may have more workers. */
  function foresee(): string | undefined {
    if (deps.askPeers !== undefined || following.running !== undefined) return undefined;
    const workers = deps.workers.list();
    return foreseeIndivisible(
      workers.map((worker) => ({
        name: `'${toWorkerName(worker, false)}'`,
        place: worker.instance ?? `node ${worker.node.id}`,
      })),
      plan,
    );
  }

  function decideOn(now: Running): void {
    const { record } = keeper;
    const { newest } = snapshots.state();
    const open = openRolloutOf(record);
    const { revision, content, supersedes, plan, pools } = now;
    noteLeader();
    const nowMs = clock.monotonicMs();
    const look = {
      open: open?.revision === revision ? open : undefined,
      pools,
      overLimitPoints: plan.overLimitPoints,
      own: readOwnFacts(deps, pools, nowMs),
      peers: readPeers(),
      hasOthers: deps.askPeers !== undefined && !asksPeers(),
    };
    const { memory, seen } = watch(watched, look, nowMs);
    watched = memory;
    view = {
      ...seen,
      trial: { revision, content, supersedes },
      newer:
        newest && newest.revision.id !== revision
          ? { revision: newest.revision.id, isWaiting: newest.isWaiting }
          : undefined,
      leads: keeper.leads,
      isVacant: keeper.isVacant,
      isLed: nowMs - ledAtMs < ledMs,
    };
    const { change, phase, text } = decide(view, record, { plan, pools });
    if (phase === 'indivisible' && decision.phase !== phase) say(now, log.warning, text);
    const { takenBack } = now;
    decision = takenBack
      ? { phase: 'taking_back', text: [takenBack.reason, keeper.trouble ?? []].flat().join('; ') }
      : { phase, text: keeper.trouble ?? text };
    if (bookkeeping.isWriting) return;
    if (takenBack !== undefined) void takeBack(now, takenBack.reason, takenBack.by);
    else if (change !== undefined) void perform(now, change, record);
  }

  /** A change of the record is a sign of life too. */
  function noteLeader(): void {
    if (ledBy !== keeper.contentId) ledAtMs = clock.monotonicMs();
    ledBy = keeper.contentId;
  }

  function asksPeers(): boolean {
    return deps.askPeers !== undefined && keeper.alone === undefined && keeper.leads;
  }

  function readPeers(): PeerFacts {
    return asksPeers() ? peerWatch.read(keeper.contentId) : noPeers;
  }

  /** `seen`: the record that it was decided on. */
  async function perform(now: Running, change: Change, seen: RolloutRecord): Promise<void> {
    const isSame = (record: RolloutRecord) => isDeepStrictEqual(record.rollout, seen.rollout);
    if (change.kind === 'begin') return begin(now, isSame);
    if (change.kind === 'lead') return lead(now, seen);
    if (change.kind === 'take_back') return void (await takeBack(now, change.reason, ''));
    const isWritten = await bookkeeping.write((record) =>
      isSame(record) ? withChange(record, change, clock.wallMs()) : undefined,
    );
    if (!isWritten) return;
    if (change.kind === 'pause') {
      const goOn = "'rollout resume', 'promote' or 'abort' goes on";
      say(now, log.warning, `paused (${change.reason}); ${goOn}`);
    } else if (change.text !== '') say(now, log.notice, change.text);
  }

  /** The rollout as its first step has it. */
  function toBegun({ revision, content }: Running) {
    return { id: deps.drawId(), revision, content };
  }

  async function begin(now: Running, isSame: (record: RolloutRecord) => boolean): Promise<void> {
    const rollout = toBegun(now);
    const isWritten = await bookkeeping.write((record) => {
      // Another control plane has brought it into force, taken it back or held it back meanwhile: following.ts ends the
      // trial.
      const isInForce = record.inForce[0]?.content === rollout.content;
      const isHeldBack = !now.mayRemove && heldBackOf(record, now) !== undefined;
      const isOver = isInForce || isHeldBack || takenBackOf(record, now) !== undefined;
      return isSame(record) && !isOver ? withBegun(record, rollout, clock.wallMs()) : undefined;
    });
    if (isWritten) say(now, log.notice, 'begins');
  }

  /** Goes on with a rollout whose leader has stopped. */
  async function lead(now: Running, { leader, rollout }: RolloutRecord): Promise<void> {
    watched = gatherAgain(watched, clock.monotonicMs());
    peerWatch.reset();
    const { name } = keeper.state.options;
    const isSame = leader.name === name;
    const isWritten = await bookkeeping.write((record) =>
      record.leader.id === leader.id && openRolloutOf(record)?.id === rollout?.id
        ? { ...record, after: isSame ? '' : leader.name }
        : undefined,
    );
    if (!isWritten || rollout === null) return;
    const where = `at step ${rollout.step + 1}`;
    const how = rollout.outcome === 'paused' ? `is paused still ${where}` : `goes on ${where}`;
    const after = isSame ? 'a restart' : leader.name;
    say(now, log.notice, `${how}, ${name} leads after ${after}`);
    const id = toShortId(now.revision);
    tell(now, `lead the rollout of revision ${id} after ${after}: it ${how}`);
  }

  /** Here at once, everywhere when it is on record. */
  async function takeBack(now: Running, reason: string, by: string): Promise<boolean> {
    now.takenBack = { reason, by };
    const { endedBefore } = now;
    const change: ChangeRecord = (record) =>
      withTakenBack(record, toBegun(now), { reason, by, atMs: clock.wallMs(), endedBefore });
    const written = bookkeeping.write(change);
    following.withhold(now);
    const isWritten = await written;
    if (!isWritten && keeper.trouble !== undefined) keeper.keepTakenBack(change);
    if (isWritten && by === '') {
      tell(now, `take back revision ${toShortId(now.revision)}: ${reason}`);
    }
    return isWritten;
  }

  function writeAction(
    { id }: RolloutOnRecord,
    action: RolloutAction,
    reason: string,
    by: string,
  ): Promise<boolean> {
    return bookkeeping.write((record) =>
      openRolloutOf(record)?.id === id
        ? withAction(record, action, { reason, by, atMs: clock.wallMs() })
        : undefined,
    );
  }

  function say({ revision }: Running, to: (text: string) => void, what: string): void {
    to(`Rollout of revision ${toShortId(revision)}: ${what}`);
  }

  function tell({ revision }: Running, what: string): void {
    deps.onEvent({ revision, what });
  }

  function undo(reason: string, by: string): void {
    const { running } = following;
    const open = openRolloutOf(keeper.record);
    if (running !== undefined) void takeBack(running, reason, by);
    if (open === undefined || open.revision === running?.revision) return;
    void bookkeeping.abort(open, reason, by);
  }

  async function act(
    action: RolloutAction,
    reason: string,
    by: string,
  ): Promise<string | undefined> {
    const { running } = following;
    const open = openRolloutOf(keeper.record);
    if (open === undefined) {
      if (running !== undefined && keeper.trouble !== undefined) return keeper.trouble;
      return 'no rollout is under way';
    }
    if (action === 'resume' && open.outcome !== 'paused') return 'the rollout is not paused';
    if (action === 'pause' && open.outcome === 'paused') return 'the rollout is paused already';
    const isHere = action === 'abort' && running?.revision === open.revision;
    const isDone = isHere
      ? await takeBack(running, reason, by)
      : await writeAction(open, action, reason, by);
    if (isDone) return undefined;
    const why =
      keeper.trouble ?? 'the rollout has changed meanwhile: look at its state and try again';
    return isHere ? `${why}; the workers of this control plane go back all the same` : why;
  }

  return {
    plan,
    start() {
      bookkeeping.attach({ follow: following.follow, decide: decideNow });
      bookkeeping.start();
    },
    state() {
      const { running } = following;
      if (running === undefined || view === undefined) return undefined;
      const { record } = keeper;
      const open = openRolloutOf(record);
      const { revision, sinceMs, pools } = running;
      const members = running.takenBack === undefined ? view.members : [];
      const chosen = members.filter(({ isChosen }) => isChosen);
      const isAlone = deps.askPeers === undefined && keeper.leads;
      return {
        revision,
        sinceMs,
        step: open && isGiven(open) ? open.step + 1 : 0,
        steps: pools.stepCount + 1,
        ...decision,
        workers: {
          having: chosen.filter(({ state }) => state === 'in_force').length,
          chosen: chosen.length,
          others: view.connected - chosen.length,
        },
        ledHereSinceMs: open !== undefined && keeper.leads ? keeper.state.ledSinceMs : undefined,
        leader:
          open === undefined || isAlone
            ? undefined
            : {
                name: record.leader.name,
                isThis: keeper.leads,
                sinceMs: keeper.state.ledSinceMs,
                after: record.after || undefined,
              },
      };
    },
    warning: foresee,
    memory: () => bookkeeping.memory(),
    act,
    async approve(revision, reason, by) {
      if (following.running?.revision === revision && decision.phase === 'indivisible') {
        return act('promote', `approved by ${by}: ${reason}`, by);
      }
      // Only the leader knows whether a share can be made: where it can, the steps are taken all the same.
      const open = openRolloutOf(keeper.record);
      const isNew = open?.revision === revision && !isGiven(open);
      return isNew && !keeper.leads
        ? bookkeeping.approve({ revision, content: open.content, reason, by })
        : bookkeeping.approveNewest(revision, reason, by);
    },
    wasInForce: (content) => keeper.wasInForce(content),
    undo,
    tellPeer(contentId) {
      if (contentId !== undefined) {
        keeper.noteNews(contentId);
        ledAtMs = clock.monotonicMs();
      }
      const { running, serves = null, lacks } = following;
      const facts = readOwnFacts(deps, running?.pools, clock.monotonicMs());
      return { record: keeper.contentId, serves, lacks, ...facts };
    },
    stop: () => bookkeeping.stop(),
  };
}
