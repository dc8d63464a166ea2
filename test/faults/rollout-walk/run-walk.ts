// Runs one walk from start to end, second by second, and returns the violations.

import { gitTiming } from '../../../control-plane/server/record/record-keeper.ts';
import { leads } from '../../../control-plane/server/record/record-state.ts';
import { errorText } from '../../../shared/errors.ts';
import { createRandom } from '../../support/random.ts';
import {
  type SimulatedFleet,
  sharedTiming,
  startSimulatedFleet,
} from '../../support/simulated-fleet.ts';
import type { Walk } from './draw-walk.ts';
import { happen, type World } from './events.ts';
import { contentOf, createLedger, type Ledger } from './ledger.ts';
import { createRevisions, type Revisions } from './published.ts';

export interface WalkResult {
  readonly events: readonly string[];
  /** The violated invariant. */
  readonly finding: string | undefined;
  readonly checks: ReadonlyMap<string, number>;
  /** How an operator had to help for the newest revision, which was good, to reach all workers. */
  readonly needed: string | undefined;
  readonly seconds: number;
}

/** Until a term has run out, workers have connected and the steps are done, each with a second hold. */
const longestEnd = 200;

export async function runWalk(walk: Walk, hasTrace = false): Promise<WalkResult> {
  const ids = createRandom(walk.seed);
  const endings: (() => unknown)[] = [];
  const events: string[] = [];
  let ledger: Ledger | undefined;
  let finding: string | undefined;
  let needed: string | undefined;
  let second = 0;
  try {
    const fleet = await startSimulatedFleet(
      { teardown: (end) => void endings.unshift(end) },
      {
        ...walk,
        workers: 0,
        timing: walk.kind === 'git' ? gitTiming : sharedTiming,
        forgetsHistory: walk.kind === 'directory',
        drawId: () => ids.bytes(16).toString('hex'),
      },
    );
    addWorkers(fleet, walk);
    const revisions = createRevisions(fleet.effects);
    const random = createRandom(walk.seed + 1);
    let due: { readonly at: number; readonly task: () => void | Promise<void> }[] = [];
    const standing = new Set<string>();
    const letThrough = new Set<number>();
    const gone: World['gone'] = new Set();
    const planeNames = walk.planes;
    const shared = { fleet, revisions, planeNames, standing, letThrough };
    const theLedger = createLedger({ ...walk, ...shared });
    ledger = theLedger;
    const world: World = {
      ...shared,
      get second() {
        return second;
      },
      gone,
      later: (seconds, task) => void due.push({ at: second + seconds, task }),
      note: (what) => {
        if (what === 'lie') theLedger.noteLie(second);
      },
      noteAborted: theLedger.noteAborted,
    };
    const runDue = async (isAll: boolean) => {
      const now = due.filter(({ at }) => isAll || at <= second);
      due = due.filter((each) => !now.includes(each));
      for (const { task } of now) await task();
      for (const worker of fleet.workers) {
        if (worker.plane !== undefined && !fleet.planes.has(worker.plane)) worker.plane = undefined;
        const names = [...fleet.planes.keys()];
        if (worker.plane !== undefined || gone.has(worker) || names.length === 0) continue;
        if (isAll || random.chance(0.3)) fleet.connect(worker, random.pick(names));
      }
    };
    let shown = '';
    let logged = 0;
    const step = async () => {
      second++;
      await fleet.pass(1);
      const seen = hasTrace ? describe(fleet) : shown;
      if (seen !== shown) events.push(`    ${second} s ${seen}`);
      shown = seen;
      finding ??= theLedger.check(second);
      if (hasTrace) events.push(...fleet.log.lines.slice(logged).map((line) => `      ${line}`));
      logged = fleet.log.lines.length;
    };

    await fleet.pass(10);
    let at = 0;
    while (second < walk.seconds && finding === undefined) {
      await runDue(false);
      for (; (walk.events[at]?.second ?? Number.POSITIVE_INFINITY) <= second; at++) {
        const event = walk.events[at];
        if (event === undefined) break;
        const text = await happen(world, event.kind, event.seed);
        if (text !== undefined) events.push(`${second} s: ${text}`);
      }
      await step();
    }
    if (finding === undefined) {
      events.push(`${second} s: all is repaired`);
      fleet.text.onWrite = undefined;
      fleet.reach.clear();
      fleet.delayMs.clear();
      await runDue(true);
      while (due.length > 0) await runDue(true);
      for (const name of walk.planes) {
        if (standing.delete(name) && fleet.planes.has(name)) fleet.goOn(name);
        if (!fleet.planes.has(name)) await fleet.startPlane(name);
      }
      for (const plane of fleet.planes.values()) plane.isCutOff = false;
      for (const worker of fleet.workers) {
        worker.answer = 'take';
        worker.lies = undefined;
        worker.isUnlinked = false;
        worker.decisionsPerSecond = 200;
        if (worker.plane === undefined) fleet.connect(worker, random.pick(walk.planes));
      }
      const endsAt = second + longestEnd;
      while (second < endsAt && finding === undefined) {
        if (isSettled(fleet, revisions)) break;
        const isPaused = fleet.readRecord()?.rollout?.outcome === 'paused';
        const plane = fleet.planes.get(walk.planes[0] ?? '');
        if (isPaused && (endsAt - second) % 30 === 0) {
          // A rollout that pauses again has nothing to be compared with.
          const action = needed === undefined ? 'resume' : 'promote';
          needed = `paused: ${fleet.readRecord()?.rollout?.reason}`;
          events.push(`${second} s: somebody says ${action}`);
          const id = fleet.readRecord()?.rollout?.revision;
          letThrough.add(revisions.find(id ?? '')?.content ?? -1);
          void plane?.rollout.act(action, 'all is well', 'Ann');
        }
        await step();
      }
      if (finding === undefined && !isSettled(fleet, revisions)) {
        finding = `the newest revision (content ${revisions.newest.content}, ${revisions.newest.text}) has not come to its end: ${describe(fleet)}`;
      }
      const { newest } = revisions;
      const verdict = fleet.readRecord()?.verdicts.find(({ revision }) => revision === newest.id);
      if (
        verdict?.outcome === 'taken_back' &&
        !revisions.isBad(newest.content) &&
        verdict.by === ''
      ) {
        needed = `taken back: ${verdict.reason}`;
      }
    }
  } catch (error) {
    finding = `an exception: ${error instanceof Error ? error.stack : errorText(error)}`;
  } finally {
    for (const end of endings) await end();
  }
  return { events, finding, checks: ledger?.checks ?? new Map(), needed, seconds: second };
}

/** Some share an id, are of another make or have little traffic. */
function addWorkers(fleet: SimulatedFleet, walk: Walk): void {
  const random = createRandom(walk.seed + 2);
  const shares = random.chance(0.4);
  const others = random.chance(0.3);
  for (let index = 0; index < walk.workers; index++) {
    const plane = walk.planes[index % walk.planes.length];
    const isOther = others && random.chance(0.2);
    fleet.addWorker({
      id: shares && random.chance(0.3) ? 'default' : `worker-${index}`,
      plane,
      decisionsPerSecond: random.chance(0.9) ? 200 : random.pick([0, 1, 20]),
      ...(isOther ? { instance: undefined } : {}),
    });
  }
}

/** Whether the newest revision is on all workers, or on none for a reason. */
function isSettled(fleet: SimulatedFleet, revisions: Revisions): boolean {
  const record = fleet.readRecord();
  const { newest } = revisions;
  const verdict = record?.verdicts.find(
    ({ revision }) => revisions.find(revision)?.content === newest.content,
  );
  const isEnded = verdict?.outcome === 'taken_back' || verdict?.outcome === 'held_back';
  const inForce = record?.inForce[0] && revisions.find(record.inForce[0].revision)?.content;
  const wanted = isEnded || record === undefined ? inForce : newest.content;
  const isRefused = revisions.effects.get(wanted ?? 0)?.isRefused === true;
  const id = record?.inForce[0]?.revision;
  return fleet.workers.every(
    ({ plane, has, told }) =>
      // In a read-only directory, a control plane that was away cannot read the revision in force.
      (id !== undefined && !fleet.canRead(plane ?? '', id)) ||
      (contentOf(told) === wanted && (isRefused || contentOf(has) === wanted)),
  );
}

function describe(fleet: SimulatedFleet): string {
  const record = fleet.readRecord();
  const counts = new Map<string, number>();
  for (const { plane, told, has } of fleet.workers) {
    const key = `${plane}: told ${contentOf(told)} has ${contentOf(has)}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  const states = [...fleet.planes.values()].map(({ name, rollout, cache, keeper }) => {
    const { newest, inForce, trial } = cache.state();
    return `${name}: newest ${newest?.revision.id.slice(0, 4)}${newest?.isHeldBack ? ' held back' : ''}${newest?.isWaiting ? ' waiting' : ''}, in force ${inForce?.revision.id.slice(0, 4)}, trial ${trial?.revision.id.slice(0, 4)}, ${JSON.stringify(rollout.state()?.text)}, leads ${leads(keeper.state)}, trouble ${keeper.state.trouble}, denied ${keeper.state.denied}`;
  });
  const { rollout } = record ?? {};
  const open = rollout
    ? `${rollout.revision.slice(0, 4)} ${rollout.outcome} step ${rollout.step} chosen ${rollout.chosen.length}`
    : 'none';
  return [
    `record: ${open}, in force ${record?.inForce[0]?.revision.slice(0, 4)}`,
    ...states,
    JSON.stringify([...counts]),
  ].join('; ');
}
