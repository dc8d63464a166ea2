// Control planes on one record that are killed, stopped or frozen at each step of a rollout.

import test from 'ava';
import { revisionOf } from '../../../test/support/revision-store.ts';
import {
  type SimulatedFleet,
  sharedTiming,
  startSimulatedFleet,
} from '../../../test/support/simulated-fleet.ts';
import { emptyRecord, openRolloutOf, parseRecord, toRecordText } from '../record/record.ts';
import { gitTiming } from '../record/record-keeper.ts';
import { leads } from '../record/record-state.ts';
import { createIsWithin, positionOf } from './pools.ts';

const plan = '20%:5s,50%:5s,100%';
const timings = { engine: sharedTiming, git: gitTiming };
const both = { planes: ['a', 'b'], workers: 12, plan };

/** Finds workers that have the revision, or are given it, although the record does not name them. */
function findOutsiders(fleet: SimulatedFleet): string[] {
  const record = fleet.readRecord();
  const { rollout } = record ?? {};
  if (rollout?.outcome === 'in_force') return [];
  const isWithin = createIsWithin(rollout ?? { chosen: [], whole: [] });
  return fleet.workers
    .filter(({ has, notified }) =>
      [has, notified].some((each) => each?.resources.has('revision-2')),
    )
    .filter(
      ({ id, instance }) =>
        !isWithin({ pool: 0, position: positionOf(rollout?.id ?? '', id, instance) }),
    )
    .map(({ id }) => id);
}

const openOf = (fleet: SimulatedFleet) => openRolloutOf(fleet.readRecord() ?? emptyRecord);
const otherOf = (name: string) => (name === 'a' ? 'b' : 'a');
const takeovers = ({ events }: SimulatedFleet) =>
  events.filter((each) => each.startsWith('lead the rollout'));

/** How often the record is written, and how the rollout ends. */
const ends = [
  ['a good revision', {}, 4, 'in_force'],
  ['one that workers refuse', { isRefused: true }, 3, 'taken_back'],
  ['one that limits everything', { overLimit: 1 }, 3, 'taken_back'],
] as const;

for (const [kind, timing] of Object.entries(timings)) {
  for (const [what, effect, writes, outcome] of ends) {
    for (let write = 1; write <= writes; write++) {
      for (const moment of ['before', 'after'] as const) {
        test(`${kind}, ${what}: killed ${moment} write ${write} of the record, no change stays half applied`, async (t) => {
          const fleet = await startSimulatedFleet(t, {
            ...both,
            timing,
            effects: new Map([[2, effect]]),
          });
          let count = 0;
          let killed: string | undefined;
          fleet.text.onWrite = (plane, text) => {
            const parsed = parseRecord(text);
            // A sign of life is not a step, and a control plane that is too late to begin writes nothing.
            if (!parsed.ok || parsed.record.beat > 0 || killed !== undefined) return undefined;
            const open = openOf(fleet);
            if (open !== undefined && open.id !== parsed.record.rollout?.id) return undefined;
            count++;
            if (count !== write) return undefined;
            killed = plane;
            return moment;
          };
          fleet.store.publish(revisionOf(2));
          let isMoved = false;
          let most = 0;
          for (let second = 0; second < 130; second++) {
            await fleet.pass(1);
            if (killed !== undefined && !isMoved) {
              isMoved = true;
              fleet.killPlane(killed, otherOf(killed));
            }
            if (second === 80 && killed !== undefined) await fleet.startPlane(killed);
            most = Math.max(
              most,
              fleet.workers.filter(({ notified }) => notified?.resources.has('revision-2')).length,
            );
            // A take-back is on record at once, and everywhere a moment later.
            if (openOf(fleet) !== undefined)
              t.deepEqual(findOutsiders(fleet), [], `second ${second}`);
          }
          t.truthy(killed);
          t.is(fleet.readRecord()?.rollout?.outcome, outcome);
          t.is(fleet.having(2).length, outcome === 'in_force' ? 12 : 0);
          t.is(fleet.planes.size, 2);
          for (const { cache, rollout } of fleet.planes.values()) {
            t.is(rollout.state(), undefined);
            t.is(cache.state().newest?.valid, outcome === 'in_force');
          }
          if (outcome === 'taken_back') t.true(most <= 2, `${most} had it`);
          const isOpenAtKill = moment === 'after' ? write < writes : write > 1;
          // Taking back a bad revision does not need a leader.
          if (outcome === 'in_force')
            t.is(takeovers(fleet).length, isOpenAtKill ? 1 : 0, fleet.events.join());
          t.false(fleet.log.lines.some((line) => line.includes('paused')));
        });
      }
    }
  }

  for (let second = 0; second < 10; second++) {
    // Proof of operating.md: the control plane that leads is stopped
    test(`${kind}: stopped ${second} s after a revision came, the other control plane continues at once`, async (t) => {
      const fleet = await startSimulatedFleet(t, { ...both, timing });
      fleet.store.publish(revisionOf(2));
      await fleet.pass(second + 1);
      const { leader, rollout } = fleet.readRecord() ?? {};
      const name = leader?.name ?? 'a';
      await fleet.stopPlane(name, otherOf(name));
      t.false(fleet.log.lines.some((line) => line.includes('paused')));
      await fleet.pass(2);
      const open = openOf(fleet);
      if (open !== undefined) t.is(fleet.readRecord()?.leader.name, otherOf(name), 'it leads');
      t.true((open?.step ?? 9) >= (rollout?.step ?? 0));
      await fleet.startPlane(name);
      await fleet.pass(60);
      t.is(fleet.having(2).length, 12);
      t.is(fleet.readRecord()?.rollout?.id, rollout?.id, 'it is the same rollout');
    });

    test(`${kind}: stopped ${second} s after a revision came, and restarted, it continues at once`, async (t) => {
      const fleet = await startSimulatedFleet(t, { plan, workers: 12, timing });
      fleet.store.publish(revisionOf(2));
      await fleet.pass(second + 1);
      const { rollout } = fleet.readRecord() ?? {};
      await fleet.stopPlane('a');
      t.deepEqual(findOutsiders(fleet), []);
      await fleet.startPlane('a');
      for (const worker of fleet.workers) fleet.connect(worker, 'a');
      await fleet.pass(2);
      t.deepEqual(findOutsiders(fleet), []);
      t.true(
        [...fleet.planes.values()].some(({ name, keeper }) => name === 'a' && leads(keeper.state)),
      );
      await fleet.pass(60);
      t.is(fleet.having(2).length, 12);
      t.is(fleet.readRecord()?.rollout?.id, rollout?.id, 'it is the same rollout');
    });
  }

  test(`${kind}: a leader that was stalled for 15 s only follows the record afterwards`, async (t) => {
    const fleet = await startSimulatedFleet(t, { ...both, timing, plan: '20%:30s,50%:30s,100%' });
    fleet.store.publish(revisionOf(2));
    await fleet.pass(10);
    const name = fleet.readRecord()?.leader.name ?? '';
    fleet.standStill(name);
    for (let second = 0; second < 15; second++) {
      await fleet.pass(1);
      t.deepEqual(findOutsiders(fleet), []);
    }
    fleet.resume(name);
    await fleet.settle();
    const isTakenOver = timing.term < 15_000;
    for (let second = 0; second < 12; second++) {
      await fleet.pass(1);
      t.deepEqual(findOutsiders(fleet), []);
    }
    t.is(fleet.readRecord()?.leader.name, isTakenOver ? otherOf(name) : name);
    t.is(takeovers(fleet).length, isTakenOver ? 1 : 0);
    t.is(fleet.readRecord()?.rollout?.step, 0, 'what passed meanwhile is no hold');
    await fleet.pass(150);
    t.is(fleet.having(2).length, 12);
    t.false(fleet.log.lines.some((line) => line.includes('paused')));
  });
}

test('the leader and its followers know since when it leads', async (t) => {
  const fleet = await startSimulatedFleet(t, { ...both, planes: ['a', 'b', 'c'] });
  const stateOf = (name: string) => fleet.planes.get(name)?.rollout.state();
  const ledSinceMs = (name: string) => Date.parse(stateOf(name)?.leader?.since ?? '');
  const leaderNow = () => fleet.readRecord()?.leader.name ?? '';
  const isWithin = (ms = 0, [from, to]: readonly [number, number]) => from <= ms && ms <= to;
  const publishedMs = fleet.clock.wallMs();
  fleet.store.publish(revisionOf(2));
  await fleet.pass(3);
  const begun = [publishedMs, fleet.clock.wallMs()] as const;
  await fleet.pass(4);
  const first = leaderNow();
  t.true(isWithin(stateOf(first)?.ledHereSinceMs, begun));
  const [follower = ''] = [...fleet.planes.keys()].filter((each) => each !== first);
  t.is(stateOf(follower)?.ledHereSinceMs, undefined);
  t.true(isWithin(ledSinceMs(follower), begun), 'a sign of life changes nothing');

  const killedMs = fleet.clock.wallMs();
  fleet.killPlane(first, follower);
  await fleet.pass(12);
  const second = leaderNow();
  t.not(second, first);
  const after = [killedMs + 1, fleet.clock.wallMs()] as const;
  t.true(isWithin(stateOf(second)?.ledHereSinceMs, after));
  t.like(stateOf(second)?.leader, { name: second, isThis: true, after: first });
  const third = [...fleet.planes.keys()].find((each) => each !== second) ?? '';
  t.true(isWithin(ledSinceMs(third), after));
  t.like(stateOf(third)?.leader, { name: second, isThis: false, after: first });

  await fleet.planes.get(second)?.rollout.act('promote', 'it is good', 'ada');
  const nextMs = fleet.clock.wallMs();
  fleet.store.publish(revisionOf(3));
  await fleet.pass(4);
  t.true((stateOf(leaderNow())?.ledHereSinceMs ?? 0) >= nextMs, 'of the next rollout');
});

test('a rollout of an unknown revision is left to its leader while that is alive', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan, workers: 12 });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(2);
  const { rollout, ...record } = fleet.readRecord() ?? emptyRecord;
  const unknown = rollout && { ...rollout, id: 'other', revision: '7'.repeat(40), content: '7' };
  const leader = { id: 'other', plane: 'other', name: 'other:1', hasLeft: false };
  fleet.text.content = toRecordText({ ...record, rollout: unknown, leader });
  fleet.text.writes++;
  await fleet.pass(7);
  t.is(fleet.readRecord()?.rollout?.id, 'other');
  t.is(fleet.having(2).length, 0);
  await fleet.pass(10);
  t.is(openOf(fleet)?.revision, revisionOf(2).id, 'that rollout no longer has a leader');
  t.true(fleet.having(2).length > 0);
});
