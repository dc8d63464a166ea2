// Serves what is on record: whose revision is on trial here, to which workers, and what becomes of it at the end. A
// control plane that stood still or was cut off catches up. Decides nothing.
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../shared/clock.ts';
import type { Bookkeeping } from '../record/bookkeeping.ts';
import {
  openRolloutOf,
  type RolloutOnRecord,
  type RolloutRecord,
  takenBackOf,
} from '../record/record.ts';
import type { RecordKeeper } from '../record/record-keeper.ts';
import type { SnapshotCache } from '../snapshot/cache.ts';
import type { TrialState } from '../snapshot/snapshot-state.ts';
import type { ConfigStore } from '../store/store.ts';
import { toInstance } from '../xds/workers.ts';
import type { RolloutPlan } from './plan.ts';
import { createIsWithin, type Pools, placeOf, toPools } from './pools.ts';

/** The rollout of the revision on trial, as this control plane has it. */
export interface Running
  extends Pick<TrialState, 'content' | 'supersedes' | 'mayRemove' | 'saidBefore' | 'sinceMs'> {
  readonly revision: string;
  readonly plan: RolloutPlan;
  readonly pools: Pools;
  /** Of the record when it began here: that is the end of another rollout. */
  readonly endedBefore: string | undefined;
  /** The share that is served; undefined while no worker has it. */
  offered: RolloutOnRecord | undefined;
  /** The verdict of a revision that is taken back here before that is on record. */
  takenBack: { readonly reason: string; readonly by: string } | undefined;
}

export interface Following {
  /** Undefined when nothing is on trial. */
  readonly running: Running | undefined;
  /** Identifies the record that the workers are served by; undefined where the revision on trial is not known. */
  readonly serves: string | undefined;
  /** Whether the store does not have the revision of the open rollout any more. */
  readonly lacks: boolean;
  follow(): void;
  /** No worker of this control plane has the revision from now on; streams are refreshed once. */
  withhold(now: Running): void;
}

export interface FollowingDeps {
  readonly plan: RolloutPlan;
  readonly snapshots: SnapshotCache;
  readonly keeper: RecordKeeper;
  readonly store: Pick<ConfigStore, 'trigger' | 'readRevision' | 'locate'>;
  readonly bookkeeping: Pick<Bookkeeping, 'giveWay' | 'isUnwritten'>;
  readonly clock: Clock;
}

/** Between two looks for a revision that was not there. */
const retryMs = 5_000;

export function createFollowing(deps: FollowingDeps): Following {
  const { plan, snapshots, keeper, store, bookkeeping, clock } = deps;
  let running: Running | undefined;
  let serves: string | undefined;
  /** The rollout of a revision that is looked for, and since when. */
  let sought = { id: '', atMs: Number.NEGATIVE_INFINITY };
  /** The rollout of a revision that the store does not have any more. */
  let lacking: string | undefined;
  /** The revision in force on record that is not here, and when it was last looked for. */
  let missed = { content: '', atMs: Number.NEGATIVE_INFINITY };

  function begin(trial: TrialState | undefined, record: RolloutRecord): void {
    if (trial?.revision.id === running?.revision && trial?.sinceMs === running?.sinceMs) return;
    running = trial && {
      ...trial,
      revision: trial.revision.id,
      plan,
      // A revision does not choose its own steps: those of the groups in force count.
      pools: toPools(plan.steps, snapshots.state().inForce?.nodeGroups ?? trial.groups),
      endedBefore: openRolloutOf(record) ? undefined : record.rollout?.id,
      offered: undefined,
      takenBack: undefined,
    };
  }

  /** The record has another rollout than that of the revision on trial, or has it no more. */
  function settle(now: Running, record: RolloutRecord): void {
    const { content, supersedes } = now;
    const takenBack = takenBackOf(record, now);
    const isInForce = record.inForce[0]?.content === content;
    if (takenBack !== undefined) {
      running = undefined;
      snapshots.takeBackTrial(takenBack.reason);
    } else if (record.rollout?.id === now.endedBefore && !isInForce) {
      return;
    } else if (isInForce || record.inForce[1]?.revision === now.revision) {
      // Another revision may have followed already.
      running = undefined;
      snapshots.endTrial();
    } else if (openRolloutOf(record) && !supersedes) {
      // Another control plane has not come as far as this one.
      withhold(now);
    }
  }

  function withhold(now: Running): void {
    if (now.offered === undefined) return;
    now.offered = undefined;
    snapshots.offerTrial(() => false);
  }

  function offer(now: Running, open: RolloutOnRecord): void {
    if (now.takenBack !== undefined || isSameShare(now.offered, open)) return;
    now.offered = open;
    const { poolOf } = now.pools;
    const isWithin = createIsWithin(open);
    snapshots.offerTrial((node) =>
      isWithin({ pool: poolOf(node), place: placeOf(open.id, node.id, toInstance(node)) }),
    );
  }

  /** The revision of this rollout is not on trial here: it is not known yet, or there is a newer one. */
  function seek(open: RolloutOnRecord): void {
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
    const { newest, inForce } = snapshots.state();
    if (newest === undefined) return;
    const place = await store.locate(open.revision, newest.revision.id);
    const isNewest = newest.revision.id === open.revision;
    // Nobody has gone on from it where the newest one has the same content.
    const isPast =
      !isNewest &&
      place?.isIncluded === true &&
      newest.revision.id === inForce?.revision.id &&
      newest.content !== open.content;
    const revision = isPast ? undefined : await store.readRevision(open.revision);
    const now = snapshots.state();
    if (openRolloutOf(keeper.record)?.id !== open.id) return;
    // Another revision has come meanwhile.
    if (now.newest?.revision.id !== newest.revision.id) return;
    const isThere = now.store.failingSinceMs === undefined;
    lacking = revision === undefined && isThere ? open.id : undefined;
    if (now.trial?.revision.id === open.revision) return;
    if (revision !== undefined) snapshots.followTrial(revision);
    else if (isPast || keeper.isVacant || keeper.leads) {
      await bookkeeping.giveWay(open, newest.revision.id);
    }
  }

  /** This control plane has not seen how what is in force came to be so: it stood still, or was cut off. */
  function catchUp(record: RolloutRecord): void {
    const [wanted] = record.inForce;
    const { inForce, trial, newest } = snapshots.state();
    if (wanted === undefined || keeper.trouble !== undefined) return;
    if ([inForce?.content, trial?.content].includes(wanted.content)) return;
    // Written by another version, which names contents otherwise.
    if (inForce?.revision.id === wanted.revision) return;
    // Its author wants it in place of what is on record, which follows.
    const isNewest = inForce?.revision.id === newest?.revision.id && newest?.isHeldBack === false;
    // Unless it is in steps, or was, which this control plane took for what it served already.
    const isTried = record.rollout?.revision === inForce?.revision.id;
    if (inForce?.isAtOnce && !isTried && (isNewest || bookkeeping.isUnwritten(inForce.content)))
      return;
    const nowMs = clock.monotonicMs();
    if (missed.content === wanted.content && nowMs - missed.atMs < retryMs) return;
    missed = { content: wanted.content, atMs: nowMs };
    void store.readRevision(wanted.revision).then(
      (revision) => {
        const isStill =
          keeper.record.inForce[0]?.content === wanted.content &&
          snapshots.state().inForce?.revision.id === inForce?.revision.id;
        if (revision !== undefined && isStill) snapshots.followInForce(revision);
      },
      () => {
        // The store is away: its own state says so, and it is looked for again.
      },
    );
  }

  return {
    withhold,
    get running() {
      return running;
    },
    get serves() {
      return serves;
    },
    get lacks() {
      return lacking !== undefined && lacking === openRolloutOf(keeper.record)?.id;
    },
    follow() {
      const { record } = keeper;
      const open = openRolloutOf(record);
      const { trial } = snapshots.state();
      begin(trial, record);
      if (running !== undefined && open?.revision !== running.revision) settle(running, record);
      const isHere = open === undefined || open.revision === running?.revision;
      serves = isHere ? keeper.contentId : undefined;
      if (running !== undefined && open?.revision === running.revision) offer(running, open);
      else if (open !== undefined && !trial?.supersedes) seek(open);
      catchUp(record);
    },
  };
}

function isSameShare(a: RolloutOnRecord | undefined, b: RolloutOnRecord): boolean {
  return a?.id === b.id && isDeepStrictEqual([a.chosen, a.whole], [b.chosen, b.whole]);
}
