// Brings a new revision to the workers in steps: each step's workers must accept it and do as well as the
// others before the next ones get it; otherwise it is taken back. One loop: what is on record is served
// (follow), what has to outlive the process is put on record (remember), and then decide.ts says what is next.
// Whoever decides changes nothing but the record; all follow that, the leader too (behaviour: record-before-workers).
import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import type { Log } from '../../shared/log.ts';
import type { Counted } from '../fleet/fleet.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { NodeIdentity } from '../snapshot/snapshot.ts';
import type { SnapshotState, TrialState } from '../snapshot/snapshot-state.ts';
import { toShortId } from '../store/revision.ts';
import type { ConfigStore } from '../store/store.ts';
import { toWorkerName } from '../xds/worker-name.ts';
import { type ConnectedWorkers, toInstance } from '../xds/workers.ts';
import { type Change, type Decision, decide, foreseeIndivisible } from './decide.ts';
import { noPeers, type PeerFacts, type RolloutFacts, readOwnFacts } from './facts.ts';
import { createFleetView } from './fleet-view.ts';
import { type AskPeers, createPeerWatch } from './peer-watch.ts';
import type { RolloutPlan } from './plan.ts';
import { createIsWithin, type Pools, toPools } from './pools.ts';
import {
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  verdictOf,
  withEnd,
  withInForce,
  withoutVerdict,
  withVerdict,
} from './record.ts';
import type { RecordKeeper } from './record-keeper.ts';
import type { MemoryState, RolloutState } from './rollout-state.ts';
import { placeOf } from './share.ts';
import type { View } from './view.ts';

export type RolloutAction = 'pause' | 'resume' | 'promote' | 'abort';

/** What the control plane did by itself, for the audit log. */
export interface RolloutEvent {
  readonly revision: string;
  /** Such as `take back revision 0123456789ab: ...`. */
  readonly what: string;
}

export interface Rollout {
  /** Whether revisions reach the workers in steps. */
  readonly isOn: boolean;
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
  /** For the control plane that leads, which knows the record with this content. */
  tellPeer(contentId: string | undefined): RolloutFacts;
  /** Decides nothing any more, and lets another control plane lead. Bounded in time. */
  stop(): Promise<void>;
}

export interface RolloutDeps {
  /** Undefined: every worker gets a new revision at once. */
  readonly plan: RolloutPlan | undefined;
  readonly snapshots: SnapshotCache;
  readonly workers: ConnectedWorkers;
  /** By instance, of the workers that report and can be believed. */
  readonly readCounted: () => ReadonlyMap<string, Counted>;
  readonly keeper: RecordKeeper;
  /** Undefined without peers. */
  readonly askPeers: AskPeers | undefined;
  readonly store: Pick<ConfigStore, 'trigger' | 'readRevision' | 'locate'>;
  readonly onEvent: (event: RolloutEvent) => void;
  readonly log: Log;
  readonly clock: Clock;
}

const lookMs = 1_000;
/** How often peers are told of a record that this control plane wrote while no rollout is under way. */
const maxTold = 5;
const handOverMs = 3_000;
/** A leader that has neither asked nor written for so long may be gone. */
const ledMs = 5_000;
const retryMs = 5_000;

/** The rollout of the revision on trial, as this control plane has it. */
interface Running {
  readonly revision: string;
  /** Wall time. */
  readonly sinceMs: number;
  readonly pools: Pools;
  /** Of the record when it began here: that is the end of another rollout. */
  readonly endedBefore: string | undefined;
  /** The share that is served. */
  offered: RolloutOnRecord | undefined;
  decision: Omit<Decision, 'change'>;
  /** What is taken back here before it is on record. */
  takenBack: { readonly reason: string; readonly by: string } | undefined;
}

export function createRollout(deps: RolloutDeps): Rollout {
  const { plan, snapshots, keeper, store, log, clock } = deps;
  const fleet = createFleetView(clock);
  const peerWatch = createPeerWatch(deps.askPeers, keeper.hear);
  let running: Running | undefined;
  let view: View | undefined;
  /** Identifies the record that is served. */
  let serves: string | undefined;
  let told = { contentId: '', times: 0 };
  let ledAtMs = clock.monotonicMs();
  let ledBy = keeper.contentId;
  /** The rollout of a revision that is looked for, and since when. */
  let sought = { id: '', atMs: Number.NEGATIVE_INFINITY };
  /** The rollout of a revision that the store does not have any more. */
  let lacking: string | undefined;
  /** What is in force on record, and not here, when it was last looked for. */
  let missed = { content: '', atMs: Number.NEGATIVE_INFINITY };
  /** In force here when it was last compared with the record. */
  let noted: string | undefined;
  let stops: (() => void)[] = [];
  let isLooking = false;
  let isWriting = false;
  let hasForeseen = false;
  let isStopped = false;

  function lookOnce(): void {
    // A look changes the snapshots, which triggers another one.
    if (isLooking || isStopped) return;
    isLooking = true;
    look();
    isLooking = false;
  }

  function look(): void {
    follow();
    remember();
    const { trial, newest } = snapshots.state();
    keeper.tend(trial !== undefined || newest?.isHeldBack === true || isOpen());
    tellPeers();
    if (running === undefined || plan === undefined) {
      fleet.noteCount(deps.workers.list().length);
      if (!hasForeseen && fleet.isGathered()) {
        hasForeseen = true;
        const text = foresee();
        if (text !== undefined) log.warning(`Rollout: ${text}`);
      }
      return;
    }
    decideOn(running, plan);
  }

  /** Before there is a revision to roll out: peers may have more workers. */
  function foresee(): string | undefined {
    if (plan === undefined || deps.askPeers !== undefined || running !== undefined)
      return undefined;
    const workers = deps.workers.list();
    return foreseeIndivisible(
      workers.map((worker) => ({
        name: `'${toWorkerName(worker, false)}'`,
        place: worker.instance ?? `node ${worker.node.id}`,
      })),
      plan,
    );
  }

  function isOpen(): boolean {
    return openRolloutOf(keeper.record) !== undefined;
  }

  /** Serves what is on record. */
  function follow(): void {
    const { record } = keeper;
    const open = openRolloutOf(record);
    const state = snapshots.state();
    if (plan === undefined) {
      reconsider(state, record);
      return;
    }
    begin(state.trial, record);
    if (running !== undefined && open?.revision !== running.revision) settle(running, record);
    if (running !== undefined && open?.revision === running.revision) offer(running, open);
    else if (open !== undefined && !state.trial?.supersedes) seek(open);
    else serves = open === undefined ? keeper.contentId : undefined;
    catchUp(record);
    reconsider(state, record);
  }

  function begin(trial: TrialState | undefined, { rollout }: RolloutRecord): void {
    if (trial?.revision.id === running?.revision && trial?.sinceMs === running?.sinceMs) return;
    running = trial && {
      revision: trial.revision.id,
      sinceMs: trial.sinceMs,
      pools: toPools(plan?.steps ?? [], trial.groups),
      endedBefore: openRolloutOf(keeper.record) ? undefined : rollout?.id,
      offered: undefined,
      decision: { phase: 'gathering', text: '' },
      takenBack: undefined,
    };
    serves = undefined;
  }

  /** What is on record is not the rollout of the revision on trial, or not any more. */
  function settle(now: Running, record: RolloutRecord): void {
    const { rollout } = record;
    const { content, supersedes } = snapshots.state().trial ?? {};
    if (rollout === null || content === undefined) return;
    const isInForce = record.inForce[0]?.content === content;
    if (rollout.id === now.endedBefore && !isInForce) return;
    const verdict = verdictOf(record, now.revision, content);
    if (verdict?.outcome === 'taken_back') {
      running = undefined;
      snapshots.takeBackTrial(verdict.reason);
    } else if (record.inForce.slice(0, 2).some((each) => each.content === content)) {
      // The rollout after it may be under way already.
      running = undefined;
      snapshots.endTrial();
    } else if (openRolloutOf(record) && !supersedes) {
      // Another control plane has not come as far as this one.
      snapshots.offerTrial(() => false);
    }
  }

  function offer(now: Running, open: RolloutOnRecord): void {
    serves = keeper.contentId;
    if (now.takenBack !== undefined || isSameShare(now.offered, open)) return;
    now.offered = open;
    const { poolOf } = now.pools;
    const isWithin = createIsWithin(open);
    /** A node is asked for at each change. */
    const known = new WeakMap<NodeIdentity, boolean>();
    snapshots.offerTrial((node) => {
      const isIn =
        known.get(node) ??
        isWithin({ pool: poolOf(node), place: placeOf(open.id, node.id, toInstance(node)) });
      known.set(node, isIn);
      return isIn;
    });
  }

  /** The revision of this rollout is not on trial here: it is not known yet, or there is a newer one. */
  function seek(open: RolloutOnRecord): void {
    serves = undefined;
    const nowMs = clock.monotonicMs();
    if (snapshots.state().withdrawn?.revision === open.revision) return;
    if (sought.id === open.id && nowMs - sought.atMs < retryMs) return;
    sought = { id: open.id, atMs: nowMs };
    void find(open).catch(() => {
      // The store is away: its own state says so, and it is looked for again.
    });
  }

  async function find(open: RolloutOnRecord): Promise<void> {
    await store.trigger();
    const { newest, inForce, trial } = snapshots.state();
    if (isStopped || newest === undefined || trial?.revision.id === open.revision) return;
    const place = await store.locate(open.revision, newest.revision.id);
    const isPast = place?.isIncluded === true && newest.revision.id === inForce?.revision.id;
    const revision = isPast ? undefined : await store.readRevision(open.revision);
    if (isStopped || openRolloutOf(keeper.record)?.id !== open.id) return;
    const isThere = snapshots.state().store.failingSinceMs === undefined;
    lacking = revision === undefined && isThere ? open.id : undefined;
    if (revision !== undefined && snapshots.state().trial?.revision.id !== open.revision) {
      snapshots.followTrial(revision);
    } else if (isPast || keeper.isVacant || keeper.leads) {
      await giveWay(open, newest.revision.id);
    }
  }

  /** This control plane has not seen how what is in force came to be so: it stood still, or was cut off. */
  function catchUp({ inForce: [wanted] }: RolloutRecord): void {
    const { inForce, trial, newest } = snapshots.state();
    if (wanted === undefined || keeper.trouble !== undefined) return;
    if ([inForce?.content, trial?.content].includes(wanted.content)) return;
    // Its author wants it in place of what is on record, which follows.
    if (inForce !== undefined && inForce.revision.id === newest?.revision.id) return;
    if (inForce?.isAtOnce && inForce.content !== noted) return;
    const nowMs = clock.monotonicMs();
    if (missed.content === wanted.content && nowMs - missed.atMs < retryMs) return;
    missed = { content: wanted.content, atMs: nowMs };
    void store.readRevision(wanted.revision).then(
      (revision) => {
        const isStill =
          keeper.record.inForce[0]?.content === wanted.content &&
          snapshots.state().inForce?.revision.id === inForce?.revision.id;
        if (revision !== undefined && isStill && !isStopped) snapshots.followInForce(revision);
      },
      () => {
        // The store is away: its own state says so, and it is looked for again.
      },
    );
  }

  /** Nobody wants its revision any more. */
  function giveWay(open: RolloutOnRecord, newest: string): Promise<boolean> {
    const reason = `revision ${toShortId(newest)} has taken its place`;
    return write((record) => {
      if (openRolloutOf(record)?.id !== open.id) return undefined;
      return withEnd(record, 'taken_back', { reason, by: '', atMs: clock.wallMs() });
    });
  }

  /** Somebody has approved the revision that is held back, at any control plane; or it could not be examined yet. */
  function reconsider({ newest }: SnapshotState, record: RolloutRecord): void {
    if (newest === undefined) snapshots.reconsider();
    if (!newest?.isHeldBack) return;
    const verdict = verdictOf(record, newest.revision.id, newest.content ?? '');
    if (verdict?.outcome === 'approved') snapshots.reconsider();
  }

  /** Puts on record what another control plane, or this one after a restart, has to know. */
  function remember(): void {
    if (isWriting || keeper.trouble !== undefined) return;
    const { record } = keeper;
    const { newest, inForce, withdrawn } = snapshots.state();
    const isHeldBack = newest?.isHeldBack === true;
    if (inForce?.content !== noted) noted = undefined;
    const isUsed = plan !== undefined || record.verdicts.length > 0 || record.inForce.length > 0;
    const open = openRolloutOf(record);
    if (open !== undefined && (plan === undefined || open.revision === withdrawn?.revision)) {
      void giveWay(open, newest?.revision.id ?? '');
      return;
    }
    const isWanted = inForce?.isAtOnce || inForce?.revision.id === newest?.revision.id;
    if (isUsed && inForce !== undefined && isWanted && inForce.content !== noted) {
      const { content } = inForce;
      noted = content;
      if (record.inForce[0]?.content !== content) {
        const now = { revision: inForce.revision.id, content };
        void write((before) => withInForce(before, now)).then((isWritten) => {
          if (!isWritten) noted = undefined;
        });
        return;
      }
    }
    if (!isHeldBack || newest?.content === undefined) return;
    const { content, revision, problems } = newest;
    if (verdictOf(record, revision.id, content) !== undefined) return;
    const reason = problems.find(({ rule }) => rule === 'large-removal')?.message ?? 'held back';
    const verdict = { revision: revision.id, content, outcome: 'held_back', reason } as const;
    void write((before) => {
      const known = inForce && before.inForce.length === 0;
      const kept = known
        ? withInForce(before, { revision: inForce.revision.id, content: inForce.content })
        : before;
      return withVerdict(kept, { ...verdict, by: '', atMs: clock.wallMs() });
    });
  }

  /** The leader asks all the time; others hear of what is new when they are asked. */
  function tellPeers(): void {
    if (keeper.alone !== undefined || !keeper.leads) return;
    const { contentId } = keeper;
    if (told.contentId !== contentId) told = { contentId, times: 0 };
    if (isOpen() || told.times < maxTold) peerWatch.ask(contentId);
    told.times++;
  }

  function decideOn(now: Running, { overLimitPoints }: RolloutPlan): void {
    const { record } = keeper;
    const { trial, newest } = snapshots.state();
    if (trial === undefined || plan === undefined) return;
    const open = openRolloutOf(record);
    const isOurs = open?.revision === now.revision;
    noteLeader();
    const peers = readPeers();
    if (isOurs && peers.lacks && newest?.isWaiting && !isWriting) {
      void giveWay(open, newest.revision.id);
      return;
    }
    view = fleet.see({
      trial: {
        revision: now.revision,
        content: trial.content,
        supersedes: trial.supersedes,
      },
      open: isOurs ? open : undefined,
      pools: now.pools,
      overLimitPoints,
      own: readOwnFacts(deps, now.pools, clock.monotonicMs()),
      peers,
      leads: keeper.leads,
      isVacant: keeper.isVacant,
      isLed: clock.monotonicMs() - ledAtMs < ledMs,
    });
    const { change, phase, text } = decide(view, record, { plan, pools: now.pools });
    const isNews = now.decision.phase !== phase;
    now.decision = { phase, text: keeper.trouble ?? text };
    if (isNews && phase === 'indivisible') say(now, log.warning, text);
    if (isWriting) return;
    if (now.takenBack !== undefined) void takeBack(now, now.takenBack.reason, now.takenBack.by);
    else if (change !== undefined) void perform(now, change, record);
  }

  /** A change of the record is a sign of life too. */
  function noteLeader(): void {
    if (keeper.leads || ledBy !== keeper.contentId) ledAtMs = clock.monotonicMs();
    ledBy = keeper.contentId;
  }

  function readPeers(): PeerFacts {
    return keeper.alone === undefined && keeper.leads ? peerWatch.read(keeper.contentId) : noPeers;
  }

  /** `seen`: the record that it was decided on. */
  async function perform(now: Running, change: Change, seen: RolloutRecord): Promise<void> {
    const isSame = (record: RolloutRecord) => isDeepStrictEqual(record.rollout, seen.rollout);
    switch (change.kind) {
      case 'begin':
        await beginOnRecord(now, isSame);
        break;
      case 'lead':
        await lead(now, seen);
        break;
      case 'take_back':
        await takeBack(now, change.reason, '');
        break;
      case 'pause':
        if (
          await write((record) => (isSame(record) ? withPause(record, change.reason) : undefined))
        ) {
          say(
            now,
            log.warning,
            `paused (${change.reason}); 'rollout resume', 'promote' or 'abort' goes on`,
          );
        }
        break;
      case 'give': {
        const { step, share, text } = change;
        const { chosen, whole } = share;
        const given = { outcome: 'running' as const, step, chosen: [...chosen], whole: [...whole] };
        const isWritten = await write((record) =>
          record.rollout && isSame(record)
            ? { ...record, rollout: { ...record.rollout, ...given, reason: '' } }
            : undefined,
        );
        if (isWritten && text !== '') say(now, log.notice, text);
        break;
      }
      case 'complete': {
        const end = { reason: '', by: '', atMs: clock.wallMs() };
        const isWritten = await write((record) =>
          isSame(record) ? withEnd(record, 'in_force', end) : undefined,
        );
        if (isWritten) say(now, log.notice, change.text);
      }
    }
  }

  async function beginOnRecord(
    now: Running,
    isSame: (record: RolloutRecord) => boolean,
  ): Promise<void> {
    const { trial, inForce } = snapshots.state();
    if (trial === undefined) return;
    const rollout: RolloutOnRecord = {
      id: randomUUID(),
      revision: now.revision,
      content: trial.content,
      base: inForce?.revision.id ?? '',
      outcome: 'running',
      step: 0,
      chosen: [],
      whole: [],
      reason: '',
    };
    const reason = `revision ${toShortId(now.revision)} has taken its place`;
    const isWritten = await write((record) => {
      if (!isSame(record)) return undefined;
      const before = openRolloutOf(record)
        ? withEnd(record, 'taken_back', { reason, by: '', atMs: clock.wallMs() })
        : record;
      // An approval is one of this rollout too, for those that start while it is under way.
      const isApproved = verdictOf(before, now.revision, trial.content)?.outcome === 'approved';
      const kept = isApproved ? before : withoutVerdict(before, trial.content);
      return { ...kept, rollout, after: '' };
    });
    if (isWritten) say(now, log.notice, 'begins');
  }

  /** Goes on with a rollout whose leader has stopped. */
  async function lead(now: Running, { leader, rollout }: RolloutRecord): Promise<void> {
    fleet.gatherAgain();
    peerWatch.reset();
    const isWritten = await write((record) =>
      record.leader.id === leader.id && openRolloutOf(record)?.id === rollout?.id
        ? { ...record, after: leader.name }
        : undefined,
    );
    if (!isWritten || rollout === null) return;
    const where = `at step ${rollout.step + 1}`;
    const how = rollout.outcome === 'paused' ? `is paused still ${where}` : `goes on ${where}`;
    say(now, log.notice, `${how}, ${keeper.name} leads after ${leader.name}`);
    const id = toShortId(now.revision);
    tell(now, `lead the rollout of revision ${id} after ${leader.name}: it ${how}`);
  }

  /** Here at once, everywhere when it is on record. */
  async function takeBack(now: Running, reason: string, by: string): Promise<boolean> {
    now.takenBack = { reason, by };
    now.offered = undefined;
    const written = write((record) =>
      openRolloutOf(record)?.revision === now.revision
        ? withEnd(record, 'taken_back', { reason, by, atMs: clock.wallMs() })
        : undefined,
    );
    snapshots.offerTrial(() => false);
    const isWritten = await written;
    if (isWritten && by === '') {
      tell(now, `take back revision ${toShortId(now.revision)}: ${reason}`);
    }
    return isWritten;
  }

  async function write(change: (record: RolloutRecord) => RolloutRecord | undefined) {
    isWriting = true;
    const isWritten = await keeper.write(change);
    isWriting = false;
    if (isWritten) lookOnce();
    return isWritten;
  }

  function say({ revision }: Running, to: (text: string) => void, what: string): void {
    to(`Rollout of revision ${toShortId(revision)}: ${what}`);
  }

  function tell({ revision }: Running, what: string): void {
    deps.onEvent({ revision, what });
  }

  /** What somebody wants of the rollout on record. */
  function toActed(
    record: RolloutRecord,
    action: Exclude<RolloutAction, 'abort'>,
    { reason, by }: { readonly reason: string; readonly by: string },
  ): RolloutRecord | undefined {
    const open = openRolloutOf(record);
    if (open === undefined) return undefined;
    if (action === 'pause') return withPause(record, reason);
    if (action === 'promote') {
      return withEnd(record, 'in_force', { reason, by, atMs: clock.wallMs() });
    }
    return { ...record, rollout: { ...open, outcome: 'running', reason: '' } };
  }

  async function doAct(action: RolloutAction, reason: string, by: string): Promise<boolean> {
    const id = openRolloutOf(keeper.record)?.id;
    if (action === 'abort') {
      const open = openRolloutOf(keeper.record);
      if (running !== undefined && open?.revision === running.revision) {
        return takeBack(running, reason, by);
      }
      return write((record) =>
        openRolloutOf(record)?.id === id
          ? withEnd(record, 'taken_back', { reason, by, atMs: clock.wallMs() })
          : undefined,
      );
    }
    return write((record) =>
      openRolloutOf(record)?.id === id ? toActed(record, action, { reason, by }) : undefined,
    );
  }

  async function act(
    action: RolloutAction,
    reason: string,
    by: string,
  ): Promise<string | undefined> {
    const open = openRolloutOf(keeper.record);
    if (open === undefined) {
      if (running !== undefined && keeper.trouble !== undefined) return keeper.trouble;
      return 'no rollout is under way';
    }
    if (action === 'resume' && open.outcome !== 'paused') return 'the rollout is not paused';
    if (action === 'pause' && open.outcome === 'paused') return 'the rollout is paused already';
    if (await doAct(action, reason, by)) return undefined;
    return keeper.trouble ?? 'the rollout has changed meanwhile: look at its state and try again';
  }

  return {
    isOn: plan !== undefined,
    start() {
      keeper.onChange(lookOnce);
      stops = [snapshots.onChange(lookOnce), repeatAfter(clock, lookMs, lookOnce)];
      lookOnce();
    },
    state() {
      if (running === undefined) return undefined;
      const { record } = keeper;
      const open = openRolloutOf(record);
      const { revision, sinceMs, pools, decision } = running;
      const members = view?.trial.revision === revision ? view.members : [];
      const chosen = members.filter(({ isChosen }) => isChosen);
      const hasShare = open !== undefined && open.chosen.length + open.whole.length > 0;
      const isAlone = deps.askPeers === undefined && keeper.leads;
      return {
        revision,
        sinceMs,
        step: hasShare ? open.step + 1 : 0,
        steps: pools.stepCount + 1,
        ...decision,
        workers: {
          having: chosen.filter(({ state }) => state === 'in_force').length,
          chosen: chosen.length,
          others: (view?.connected ?? 0) - chosen.length,
        },
        leader:
          open === undefined || isAlone
            ? undefined
            : { name: record.leader.name, isThis: keeper.leads, after: record.after || undefined },
      };
    },
    warning: foresee,
    memory: () => ({
      place: keeper.place,
      alone: keeper.alone,
      trouble: keeper.trouble,
      isForgetful: keeper.isForgetful,
      lastWord: keeper.record.verdicts[0],
    }),
    act,
    async approve(revision, reason, by) {
      const { newest } = snapshots.state();
      if (running?.revision === revision && running.decision.phase === 'indivisible') {
        return act('promote', `approved by ${by}: ${reason}`, by);
      }
      const approve = async (content: string) => {
        const verdict = { revision, content, outcome: 'approved', reason, by } as const;
        const isWritten = await write((record) =>
          withVerdict(record, { ...verdict, atMs: clock.wallMs() }),
        );
        return isWritten
          ? undefined
          : (keeper.trouble ?? 'it could not be put on record: try again');
      };
      // Only the leader knows whether a share can be made: where it can, the steps are taken all the same.
      const open = openRolloutOf(keeper.record);
      const isNew = open?.revision === revision && open.chosen.length + open.whole.length === 0;
      if (isNew && !keeper.leads) return approve(open.content);
      const id = toShortId(revision);
      if (newest?.revision.id !== revision) {
        return `revision ${id} is not the newest one, which is ${toShortId(newest?.revision.id ?? 'not known')}`;
      }
      if (!newest.isHeldBack || newest.content === undefined)
        return `revision ${id} is not held back`;
      return approve(newest.content);
    },
    tellPeer(contentId) {
      if (contentId !== undefined) {
        keeper.hear(contentId);
        ledAtMs = clock.monotonicMs();
      }
      const facts = readOwnFacts(deps, running?.pools, clock.monotonicMs());
      const lacks = lacking !== undefined && lacking === openRolloutOf(keeper.record)?.id;
      return { record: keeper.contentId, serves: serves ?? null, lacks, ...facts };
    },
    async stop() {
      isStopped = true;
      for (const end of stops) end();
      const late = Promise.withResolvers<void>();
      const cancel = clock.after(handOverMs, late.resolve);
      await Promise.race([keeper.handOver(), late.promise]);
      cancel();
      if (keeper.alone === undefined && isOpen()) peerWatch.ask(keeper.contentId);
    },
  };
}

function withPause(record: RolloutRecord, reason: string): RolloutRecord | undefined {
  const open = openRolloutOf(record);
  return open && { ...record, rollout: { ...open, outcome: 'paused', reason } };
}

function isSameShare(a: RolloutOnRecord | undefined, b: RolloutOnRecord): boolean {
  return a?.id === b.id && isDeepStrictEqual([a.chosen, a.whole], [b.chosen, b.whole]);
}
