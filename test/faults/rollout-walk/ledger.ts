// Checks what must hold in each second of a walk, based only on the workers and the record: this code does not know how
// a rollout is decided (shared/spec: what a rollout believes, and what it never does).

import { isDeepStrictEqual } from 'node:util';
import {
  openRolloutOf,
  parseRecord,
  type RolloutRecord,
} from '../../../control-plane/server/record/record.ts';
import { leads } from '../../../control-plane/server/record/record-state.ts';
import { parseRolloutPlan, type RolloutPlan } from '../../../control-plane/server/rollout/plan.ts';
import type { Snapshot } from '../../../control-plane/server/snapshot/snapshot.ts';
import {
  numberOf,
  type SimulatedFleet,
  type SimulatedPlane,
  type SimulatedWorker,
} from '../../support/simulated-fleet.ts';
import type { Walk } from './draw-walk.ts';
import type { Revisions } from './published.ts';
import { createSaid } from './said.ts';

/** An undo must reach every reachable worker within this time. */
const undoneWithin = 10;
const takenBackWithin = 5;
/** One poll a second, an answer of a worker, and counting from one second to the next. */
const slack = 3;

export interface LedgerDeps extends Pick<Walk, 'plan' | 'kind' | 'reportSeconds' | 'peerMs'> {
  readonly fleet: SimulatedFleet;
  readonly revisions: Revisions;
  readonly planeNames: readonly string[];
  readonly standing: ReadonlySet<string>;
  readonly letThrough: ReadonlySet<number>;
}

export type Ledger = ReturnType<typeof createLedger>;

interface Known {
  plane: string | undefined;
  planeSince: number;
  told: number | undefined;
  toldSince: number;
  /** Since when it has accepted everything that it is sent. */
  takesSince: number;
  instance: string | undefined;
}

export function contentOf(snapshot: Snapshot | undefined): number | undefined {
  return snapshot && (numberOf(snapshot) ?? 0);
}

export function createLedger(deps: LedgerDeps) {
  const { fleet, revisions, planeNames, standing, letThrough, reportSeconds } = deps;
  const parsed = parseRolloutPlan(deps.plan);
  if (!parsed.ok) throw new Error(parsed.reason);
  const plan: RolloutPlan = parsed.plan;
  const pollSeconds = deps.kind === 'git' ? 6 : 2;
  const peerSeconds = Math.ceil(deps.peerMs / 1_000);
  const checks = new Map<string, number>();
  const known = new Map<SimulatedWorker, Known>();
  /** Since when a control plane has been running, is not stalled, and reaches the store and its peers. */
  const wellSince = new Map<string, { readonly plane: SimulatedPlane; readonly at: number }>();
  /** By content: since when no worker may have it. */
  const unwantedSince = new Map<number, number>();
  let lieAt = Number.NEGATIVE_INFINITY;
  let record: RolloutRecord | undefined;
  /** Values of the open rollout. */
  let given = { key: '', limit: 0, step: '', stepAt: 0 };
  let leader = { name: '', since: 0 };
  let overSince: number | undefined;
  let evidenceSince: number | undefined;
  let evidenceText = '';
  let connectedBefore: readonly number[] = [];
  const aborted = new Set<string>();
  /** The workers that were ever sent the revision of the open rollout. */
  let exposed = { rollout: '', keys: new Set<string>(), left: new Set<string>() };
  /** The last time that a worker refused something, or left. */
  let refusedAt = Number.NEGATIVE_INFINITY;
  let leftAt = Number.NEGATIVE_INFINITY;
  let rolloutSince = 0;
  /** By content: when the record stated that it is taken back. */
  const takenBackAt = new Map<number, number>();
  let recordWrong: string | undefined;
  const countsDifferSince = new Map<string, number>();
  const reasonMissingSince = new Map<string, number>();
  const otherInForceSince = new Map<string, number>();
  const said = createSaid({ fleet, revisions, planeNames, standing, pollSeconds, note });

  /** A revision on trial whose author then wants it at once is given to all, and that is recorded. */
  function isSharing(name: string | undefined): boolean {
    const plane = name === undefined ? undefined : fleet.planes.get(name);
    if (plane === undefined) return false;
    const { inForce } = plane.cache.state();
    const served = inForce && contentOfRevision(inForce.revision.id);
    return served === undefined || served !== contentOfRevision(record?.rollout?.revision ?? '');
  }

  /** A stalled control plane sends nothing: workers that connect to it keep their rules. */
  function isTelling(name: string | undefined): boolean {
    return isSharing(name) && name !== undefined && !standing.has(name);
  }

  fleet.text.onWritten = (text) => {
    const reading = parseRecord(text);
    if (reading.ok) {
      recordWrong ??=
        findInjustice(reading.record) ??
        findTriedInForce(reading.record) ??
        findTriedAgain(reading.record);
      record = reading.record;
    } else recordWrong = `the record does not parse: ${reading.problem}`;
  };

  /** A good revision is taken back or paused only for an existing reason. */
  function findInjustice(next: RolloutRecord): string | undefined {
    const { rollout } = next;
    const before = record?.rollout;
    const isSame = before?.id === rollout?.id && before?.outcome === rollout?.outcome;
    if (rollout === null || isSame || !['paused', 'taken_back'].includes(rollout.outcome)) {
      return undefined;
    }
    const content = contentOfRevision(rollout.revision);
    const by = next.verdicts.find((each) => each.rollout === rollout.id)?.by;
    const isOfSomebody = rollout.outcome === 'taken_back' && by !== '';
    if (content === undefined || revisions.isBad(content) || isOfSomebody) return undefined;
    note('a good revision is not taken back');
    const { reason } = rollout;
    if (/has taken its place|^as somebody says|^too little traffic/.test(reason)) return undefined;
    // Workers of the share may have few callers, or report nothing for a while.
    if (rollout.outcome === 'paused' && / stand still, or nobody/.test(reason)) return undefined;
    if (/ cannot follow/.test(reason)) {
      const areFollowing = planeNames.every((name) => fleet.canRead(name, rollout.revision));
      return areFollowing ? `content ${content} is good, and paused: ${reason}` : undefined;
    }
    let at = lieAt;
    if (/ refuses it/.test(reason)) at = isAnyRefusing() ? Number.POSITIVE_INFINITY : refusedAt;
    if (/ gone/.test(reason)) at = leftAt;
    const isTrue = at >= rolloutSince - slack - reportSeconds;
    return isTrue ? undefined : `content ${content} is good, and ${rollout.outcome}: ${reason}`;
  }

  function isAnyRefusing(): boolean {
    return fleet.workers.some(({ answer, nacked }) => answer === 'refuse' || nacked !== undefined);
  }

  /** Rules that were taken back are tried again as another revision, never automatically. */
  function findTriedAgain(next: RolloutRecord): string | undefined {
    const open = openRolloutOf(next);
    if (open === undefined || record?.rollout?.id === open.id) return undefined;
    note('what was taken back is not tried again');
    const verdict = record?.verdicts.find(({ revision }) => revision === open.revision);
    return verdict?.outcome === 'taken_back' && !/has taken its place/.test(verdict.reason)
      ? `revision ${open.revision.slice(0, 4)} is on trial again, which was taken back: ${verdict.reason}`
      : undefined;
  }

  function findTriedInForce(next: RolloutRecord): string | undefined {
    const open = openRolloutOf(next);
    note('what is in force is not on trial');
    return open !== undefined && open.content === next.inForce[0]?.content
      ? `revision ${open.revision.slice(0, 4)} is on trial, and in force on record`
      : undefined;
  }

  function contentOfRevision(id: string): number | undefined {
    return revisions.find(id)?.content;
  }

  function isWell(plane: SimulatedPlane): boolean {
    const { name } = plane;
    return (
      knowsInForce(plane) &&
      !standing.has(name) &&
      !plane.isCutOff &&
      (fleet.reach.get(name) ?? 'fine') === 'fine' &&
      fleet.text.mode === 'fine' &&
      !fleet.delayMs.has(name)
    );
  }

  function wellFor(name: string | undefined, second: number): number {
    const since = name === undefined ? undefined : wellSince.get(name)?.at;
    return since === undefined ? -1 : second - since;
  }

  function observe(second: number): void {
    for (const name of planeNames) {
      const plane = fleet.planes.get(name);
      if (plane === undefined || !isWell(plane)) wellSince.delete(name);
      else if (wellSince.get(name)?.plane !== plane) wellSince.set(name, { plane, at: second });
    }
    for (const worker of fleet.workers) {
      const before = known.get(worker);
      const told = contentOf(worker.told);
      const isSame = before?.plane === worker.plane && before?.instance === worker.instance;
      known.set(worker, {
        plane: worker.plane,
        planeSince: isSame ? (before?.planeSince ?? second) : second,
        told,
        toldSince: isSame && before?.told === told ? (before?.toldSince ?? second) : second,
        takesSince:
          worker.answer === 'take' ? Math.min(before?.takesSince ?? second, second) : second + 1,
        instance: worker.instance,
      });
    }
    connectedBefore = [...connectedBefore.slice(-4), countConnected()];
  }

  function countConnected(): number {
    return fleet.workers.filter(({ plane }) => plane !== undefined).length;
  }

  /** The contents that some worker may have. */
  function wanted(): Set<number> {
    const contents = new Set<number>();
    const ids = [record?.inForce[0]?.revision];
    const open = record && openRolloutOf(record);
    if (open !== undefined && !aborted.has(open.id)) ids.push(open.revision);
    for (const id of ids) {
      const content = id === undefined ? undefined : contentOfRevision(id);
      if (content !== undefined) contents.add(content);
    }
    const { newest } = revisions;
    if (newest.isImmediate) contents.add(newest.content);
    if (record === undefined || record.inForce.length === 0) contents.add(1);
    return contents;
  }

  /** In a read-only directory, a control plane that was away has not seen the revision in force, and cannot read it. */
  function knowsInForce({ name }: SimulatedPlane): boolean {
    const inForce = record?.inForce[0];
    return inForce === undefined || fleet.canRead(name, inForce.revision);
  }

  /** The worker keeps its rules. */
  function refuses({ told }: SimulatedWorker): boolean {
    return revisions.effects.get(contentOf(told) ?? 0)?.isRefused === true;
  }

  function note(check: string): void {
    checks.set(check, (checks.get(check) ?? 0) + 1);
  }

  /** No worker has what was undone. A worker counts while it is connected to a control plane that has been running, not
   * stalled, and connected all the time, since no other one could notify it. */
  function checkUndone(second: number): string | undefined {
    const contents = wanted();
    for (const each of revisions.all) {
      if (contents.has(each.content)) unwantedSince.delete(each.content);
      else if (!unwantedSince.has(each.content)) unwantedSince.set(each.content, second);
    }
    for (const worker of fleet.workers) {
      const { plane, planeSince = second, takesSince = second } = known.get(worker) ?? {};
      const well = plane === undefined ? undefined : wellSince.get(plane);
      if (well === undefined) continue;
      for (const [what, snapshot, since] of [
        ['is told', worker.told, 0],
        ['has', worker.has, takesSince],
      ] as const) {
        const content = contentOf(snapshot);
        if (what === 'has' && refuses(worker)) continue;
        const unwanted = content === undefined ? undefined : unwantedSince.get(content);
        if (unwanted === undefined) continue;
        note('nobody has what was undone');
        const from = Math.max(unwanted, well.at, planeSince, since);
        if (second - from > undoneWithin) {
          return `worker ${worker.id} at ${plane} ${what} content ${content}, unwanted since second ${unwanted}; wanted: ${[...contents].join(', ')}`;
        }
      }
    }
    return undefined;
  }

  /** A revision wanted at once reaches all workers at once. */
  function checkImmediate(second: number): string | undefined {
    const { newest } = revisions;
    if (!newest.isImmediate || second - newest.at <= undoneWithin) return undefined;
    for (const worker of fleet.workers) {
      const { plane, planeSince = second, takesSince = second } = known.get(worker) ?? {};
      const well = plane === undefined ? undefined : wellSince.get(plane);
      if (well === undefined) continue;
      note('an undo reaches everybody');
      const from = Math.max(newest.at, well.at, planeSince);
      if (second - from > undoneWithin && contentOf(worker.told) !== newest.content) {
        return `worker ${worker.id} at ${plane} is told content ${contentOf(worker.told)}, not ${newest.content} (${newest.text})`;
      }
      if (refuses(worker)) continue;
      const fromHas = Math.max(from, takesSince);
      if (second - fromHas > undoneWithin && contentOf(worker.has) !== newest.content) {
        return `worker ${worker.id} at ${plane} has content ${contentOf(worker.has)}, not ${newest.content} (${newest.text})`;
      }
    }
    return undefined;
  }

  function observeRollout(second: number): void {
    const rollout = record?.rollout;
    const isOpen = rollout?.outcome === 'running' || rollout?.outcome === 'paused';
    if (record !== undefined && record.leader.id !== leader.name) {
      leader = { name: record.leader.id, since: second };
    }
    const percent = (rollout && plan.steps[rollout.step]?.percent) ?? 100;
    const shareOf = (count: number) => Math.max(1, Math.floor((count * percent) / 100));
    if (rollout?.id !== exposed.rollout) {
      exposed = { rollout: rollout?.id ?? '', keys: new Set(), left: new Set() };
      rolloutSince = second;
    }
    const most = Math.max(...connectedBefore, countConnected());
    const key = isOpen ? JSON.stringify([rollout.id, rollout.step, rollout.chosen]) : '';
    const step = isOpen ? `${rollout.id} ${rollout.step}` : '';
    if (step !== given.step) given = { ...given, step, stepAt: second, limit: 0 };
    // Workers that share a node id stay together: more of them may connect, as far as the step allows.
    const count = key === given.key ? countConnected() : most;
    given = { ...given, key, limit: Math.max(given.limit, shareOf(count)) };
    for (const { revision, outcome } of record?.verdicts ?? []) {
      const content = contentOfRevision(revision);
      if (content === undefined) continue;
      if (outcome !== 'taken_back') takenBackAt.delete(content);
      else if (!takenBackAt.has(content)) takenBackAt.set(content, second);
    }
    for (const content of [...takenBackAt.keys()]) {
      const isStill = record?.verdicts.some(
        ({ revision, outcome }) =>
          outcome === 'taken_back' && contentOfRevision(revision) === content,
      );
      if (!isStill) takenBackAt.delete(content);
    }
  }

  /** A revision on trial has its share, and no more. */
  function checkShare(second: number): string | undefined {
    const rollout = record?.rollout;
    const content = rollout ? contentOfRevision(rollout.revision) : undefined;
    const isOpen = rollout?.outcome === 'running' || rollout?.outcome === 'paused';
    const inForce = record?.inForce[0] && contentOfRevision(record.inForce[0].revision);
    if (!isOpen || content === undefined || content === inForce || rollout.whole.length > 0) {
      overSince = undefined;
      return undefined;
    }
    if (revisions.newest.isImmediate && revisions.newest.content === content) return undefined;
    note('a revision on trial has no more than its share');
    const told = fleet.workers.filter(
      (worker) => isTelling(worker.plane) && contentOf(worker.told) === content,
    );
    const text = `${told.length} workers are told content ${content} at step ${rollout.step + 1}, at most ${given.limit} of ${countConnected()} should`;
    if (told.length > 2 * given.limit + 2) return text;
    const exposure = findExposure(told);
    if (exposure !== undefined) return exposure;
    if (told.length <= given.limit) overSince = undefined;
    else overSince ??= second;
    return overSince !== undefined && second - overSince > pollSeconds + slack ? text : undefined;
  }

  /** Other workers may replace those that have left, and the share may shrink, but it must not rotate among the
   * workers. */
  function findExposure(told: readonly SimulatedWorker[]): string | undefined {
    const keyOf = ({ id, instance }: SimulatedWorker) => instance ?? id;
    for (const worker of told) exposed.keys.add(keyOf(worker));
    const connected = new Set(
      fleet.workers.filter(({ plane }) => plane !== undefined).map((worker) => keyOf(worker)),
    );
    for (const key of exposed.keys) if (!connected.has(key)) exposed.left.add(key);
    const most = 2 * given.limit + 2 + exposed.left.size;
    return exposed.keys.size > most
      ? `${exposed.keys.size} workers were told of one on trial, at most ${given.limit} at once, and ${exposed.left.size} have left`
      : undefined;
  }

  /** A bad revision never reaches all workers, unless it was approved, or workers lied or were silent. */
  function checkBad(second: number): string | undefined {
    const inForce = record?.inForce[0] && contentOfRevision(record.inForce[0].revision);
    if (inForce === undefined || !revisions.isBad(inForce) || letThrough.has(inForce)) {
      return undefined;
    }
    note('a bad revision is not in force');
    // If something bad is already in force, this is no worse.
    if ([...letThrough].some(revisions.isBad)) return undefined;
    const effect = revisions.effects.get(inForce);
    // Without figures, it is not noticed.
    const isJudged = plan.onSilence === 'stop' && lieAt === Number.NEGATIVE_INFINITY;
    if (!effect?.isRefused && !isJudged) return undefined;
    if (effect?.isRefused && plan.onIndivisible === 'proceed') return undefined;
    void second;
    return `content ${inForce} is in force, which is bad: ${JSON.stringify(effect)}`;
  }

  /** If the leader has no problems, a bad revision is taken back soon. */
  function checkEvidence(second: number): string | undefined {
    const rollout = record?.rollout;
    const isOpen = rollout?.outcome === 'running' || rollout?.outcome === 'paused';
    const content = rollout ? contentOfRevision(rollout.revision) : undefined;
    const inForce = record?.inForce[0] && contentOfRevision(record.inForce[0].revision);
    const plane = [...fleet.planes.values()].find(({ keeper }) => leads(keeper.state));
    const isEvident =
      isOpen &&
      content !== undefined &&
      plane !== undefined &&
      plane.keeper.record.leader.id === record?.leader.id &&
      !(rollout.outcome === 'paused' && letThrough.has(content)) &&
      wellFor(plane.name, second) > 6 &&
      hasEvidence(content, inForce, plane.name, second);
    if (!isEvident) {
      evidenceSince = undefined;
      return undefined;
    }
    note('a bad revision is taken back');
    evidenceSince ??= second;
    const from = Math.max(
      evidenceSince,
      given.stepAt + 2 * reportSeconds,
      leader.since + 2 * reportSeconds,
    );
    return second - from > takenBackWithin + slack + peerSeconds
      ? `content ${content} is still on trial: ${evidenceText} since second ${evidenceSince}`
      : undefined;
  }

  function hasEvidence(
    content: number,
    inForce: number | undefined,
    leading: string,
    second: number,
  ): boolean {
    const effect = revisions.effects.get(content);
    if (effect === undefined) return false;
    const seen = fleet.workers.filter(
      ({ plane }) => plane === leading || wellFor(plane, second) > 6,
    );
    const told = fleet.workers.filter(
      (worker) => worker.plane !== undefined && contentOf(worker.told) === content,
    );
    if (effect.isRefused) {
      const refusing = seen.filter(
        ({ told: snapshot, nacked }) =>
          contentOf(snapshot) === content && nacked === snapshot?.version,
      );
      evidenceText = `${refusing.length} of ${told.length} workers refuse it`;
      return refusing.length > 0 && refusing.length * 3 >= told.length;
    }
    if (second - lieAt < 60) return false;
    const counting = (wantedContent: number | undefined) =>
      seen.filter(
        ({ told: snapshot, has, counted, decisionsPerSecond, instance }) =>
          instance !== undefined &&
          contentOf(snapshot) === wantedContent &&
          has?.version === snapshot?.version &&
          counted?.version === has?.version &&
          decisionsPerSecond >= 100 &&
          (counted?.now.decisions ?? 0) + (counted?.now.errors ?? 0) >= 4 * reportSeconds * 100,
      ).length;
    const having = counting(content);
    const others = counting(inForce);
    evidenceText = `${having} workers with it and ${others} others have counted`;
    return having >= 3 && others >= 3 && inForce !== undefined && !revisions.isBad(inForce);
  }

  /** A revision that was taken back is given to no worker, even by a control plane that has just started. */
  function checkNeverAgain(second: number): string | undefined {
    const open = record?.rollout;
    const isOpen = open?.outcome === 'running' || open?.outcome === 'paused';
    const tried = isOpen ? contentOfRevision(open.revision) : undefined;
    for (const worker of fleet.workers) {
      const { told, toldSince, plane } = known.get(worker) ?? {};
      if (told === undefined || toldSince !== second || plane === undefined) continue;
      note('what was taken back is not given');
      const at = takenBackAt.get(told);
      if (at === undefined || told === tried || second - at <= pollSeconds + slack) continue;
      const well = wellSince.get(plane);
      if (well === undefined) continue;
      // The worker already had it.
      if (contentOf(worker.has) === told) continue;
      const { newest } = revisions;
      if (newest.content === told && newest.isImmediate) continue;
      if (second - well.at <= pollSeconds + slack && second - well.at > 0) continue;
      return `worker ${worker.id} is told content ${told} by ${plane}, taken back since second ${at}`;
    }
    return undefined;
  }

  /** The reported number of workers with a revision is correct: of all workers by the leading control plane, of its own
   * workers by the others. */
  function checkCounts(second: number): string | undefined {
    const open = record && openRolloutOf(record);
    const isQuiet =
      open !== undefined &&
      planeNames.every((name) => wellFor(name, second) > 12) &&
      fleet.workers.every((worker) => {
        const entry = known.get(worker);
        return (
          entry !== undefined &&
          second - entry.planeSince > 6 &&
          second - entry.toldSince > pollSeconds + slack + 2
        );
      });
    if (!isQuiet) {
      countsDifferSince.clear();
      return undefined;
    }
    const content = contentOfRevision(open.revision);
    for (const { name, keeper, rollout } of fleet.planes.values()) {
      const state = rollout.state();
      if (state?.revision !== open.revision) continue;
      note('who has it is said as it is');
      const counted = fleet.workers.filter(
        ({ plane }) => plane === name || (leads(keeper.state) && plane !== undefined),
      );
      const told = counted.filter((worker) => contentOf(worker.told) === content);
      const having = told.filter(
        ({ has, told: snapshot, nacked }) =>
          has?.version === snapshot?.version && nacked === undefined,
      ).length;
      const is = { having, chosen: told.length, others: counted.length - told.length };
      if (isDeepStrictEqual(is, state.workers)) countsDifferSince.delete(name);
      else if (!countsDifferSince.has(name)) countsDifferSince.set(name, second);
      if (second - (countsDifferSince.get(name) ?? second) > 4 + peerSeconds) {
        return `${name} says ${JSON.stringify(state.workers)}, and it is ${JSON.stringify(is)} (content ${content})`;
      }
    }
    return undefined;
  }

  /** All healthy control planes agree with the record. */
  function checkAgreement(second: number): string | undefined {
    const inForce = record?.inForce[0] && contentOfRevision(record.inForce[0].revision);
    if (inForce === undefined || record === undefined) return undefined;
    for (const plane of fleet.planes.values()) {
      const { name } = plane;
      if (wellFor(name, second) <= undoneWithin) {
        otherInForceSince.delete(name);
        reasonMissingSince.delete(name);
        continue;
      }
      const state = plane.cache.state();
      note('control planes agree with the record');
      const serves = state.inForce && contentOfRevision(state.inForce.revision.id);
      if (serves === inForce) otherInForceSince.delete(name);
      else if (!otherInForceSince.has(name)) otherInForceSince.set(name, second);
      const since = otherInForceSince.get(name);
      if (since !== undefined && second - since > undoneWithin) {
        return `${name} serves content ${serves}, on record is ${inForce}`;
      }
      const { newest } = state;
      const verdict = record.verdicts.find(({ revision }) => revision === newest?.revision.id);
      const isSaid =
        newest === undefined ||
        verdict?.outcome !== 'taken_back' ||
        newest.problems.some(({ message }) => message.includes(verdict.reason));
      if (isSaid) reasonMissingSince.delete(name);
      else if (!reasonMissingSince.has(name)) reasonMissingSince.set(name, second);
      const missing = reasonMissingSince.get(name);
      if (missing !== undefined && second - missing > undoneWithin) {
        return `${name} does not say why revision ${newest?.revision.id.slice(0, 4)} was taken back: '${verdict?.reason}' is not in ${JSON.stringify(newest?.problems)}`;
      }
    }
    return undefined;
  }

  return {
    checks,
    noteLie(second: number) {
      lieAt = second;
    },
    /** A user was told that this rollout is over. */
    noteAborted: (rollout: string) => void aborted.add(rollout),
    /** After each second: returns the violated invariant. */
    check(second: number) {
      if (fleet.workers.some(({ lies }) => lies !== undefined)) lieAt = second;
      if (isAnyRefusing()) refusedAt = second;
      if (fleet.workers.some(({ plane }) => plane === undefined)) leftAt = second;
      observe(second);
      observeRollout(second);
      return (
        recordWrong ??
        checkUndone(second) ??
        checkImmediate(second) ??
        checkShare(second) ??
        checkBad(second) ??
        checkEvidence(second) ??
        checkNeverAgain(second) ??
        checkCounts(second) ??
        checkAgreement(second) ??
        said.check(second, record, (name) => wellFor(name, second))
      );
    },
  };
}
