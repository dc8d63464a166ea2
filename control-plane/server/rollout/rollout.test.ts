// The rollout of a revision over real snapshots and a real record, with the test's own workers, traffic and time.

import test, { type ExecutionContext } from 'ava';
import { revisionOf } from '../../../test/support/revision-store.ts';
import {
  type FleetOptions,
  type SimulatedFleet,
  startSimulatedFleet,
} from '../../../test/support/simulated-fleet.ts';
import { emptyRecord, toRecordText, withEnd, withVerdict } from '../record/record.ts';
import { gitTiming } from '../record/record-keeper.ts';
import { leads } from '../record/record-state.ts';

/** Starts with the second revision under way. */
async function startWithSecond(
  t: ExecutionContext,
  options: FleetOptions,
): Promise<SimulatedFleet> {
  const fleet = await startSimulatedFleet(t, options);
  fleet.store.publish(revisionOf(2));
  return fleet;
}

const count = (fleet: SimulatedFleet, number: number) => fleet.having(number).length;
const newestProblem = (fleet: SimulatedFleet) =>
  fleet.plane.cache.state().newest?.problems.at(-1)?.message ?? '';

// Proof of SECURITY.md: cannot choose to be first, or enlarge the share
test('other workers are first in each rollout', async (t) => {
  const fleet = await startSimulatedFleet(t);
  const shares: string[] = [];
  for (let number = 2; number < 8; number++) {
    fleet.store.publish(revisionOf(number));
    await fleet.pass(3);
    shares.push(
      fleet
        .having(number)
        .map(({ id }) => id)
        .join(),
    );
    await fleet.plane.rollout.act('abort', 'next', 'ada');
    await fleet.pass(2);
  }
  t.true(new Set(shares).size > 2, shares.join(' '));
});

test('a control plane that is stopped during a take-back notifies its peers, which no longer serve the revision', async (t) => {
  for (let offset = 0; offset < 5; offset++) {
    const fleet = await startWithSecond(t, {
      plan: 'canary=20%,hold=60s',
      planes: ['a', 'b'],
      timing: gitTiming,
    });
    await fleet.pass(20 + offset);
    const leader = [...fleet.planes.values()].find(({ keeper }) => leads(keeper.state));
    const name = leader?.name ?? '';
    const aborting = leader?.rollout.act('abort', 'bad', 'Ann');
    await fleet.stopPlane(name, name === 'a' ? 'b' : 'a');
    t.is(await aborting, undefined);
    await fleet.pass(2);
    t.deepEqual(fleet.having(2), [], `${offset}`);
  }
});

test('a rollout that was recorded although the answer was lost shares its id with no later one', async (t) => {
  const fleet = await startSimulatedFleet(t);
  const { swap } = fleet.text;
  fleet.text.swap = async (before, text) => {
    fleet.text.swap = swap;
    await swap(before, text);
    throw new Error('the answer is lost');
  };
  fleet.store.publish(revisionOf(2));
  await fleet.pass(1);
  const { id = '' } = fleet.readRecord()?.rollout ?? {};
  const end = { reason: 'ended by another one', by: '', atMs: 1 };
  fleet.text.content = toRecordText(withEnd(fleet.readRecord() ?? emptyRecord, 'taken_back', end));
  fleet.text.writes++;
  await fleet.pass(5);
  t.regex(newestProblem(fleet), /ended by another one/);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(5);
  t.is(count(fleet, 3), 2);
  t.not(fleet.readRecord()?.rollout?.id, id);
});

test('while a revision is on trial its rollout polls the store every five seconds, and not otherwise', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=10%,hold=1h' });
  await fleet.pass(20);
  t.deepEqual(fleet.triggers, []);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(20);
  t.is(fleet.triggers.length, 5, 'at once, and four times');
});

test('peers are notified five times of a record entry that is made without a rollout', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  for (const number of [2, 3]) {
    fleet.questions.length = 0;
    fleet.store.publish(revisionOf(number, 'in a hurry\n\nRollout: now'));
    await fleet.pass(20);
    t.is(fleet.questions.length, 5);
    t.is(new Set(fleet.questions).size, 1, 'the one that wrote it');
  }
});

test('while the record is being written, no other write begins', async (t) => {
  const fleet = await startSimulatedFleet(t);
  const { swap } = fleet.text;
  const { promise, resolve } = Promise.withResolvers<void>();
  fleet.text.swap = async (...args) => {
    await promise;
    return swap(...args);
  };
  fleet.store.publish({ ...revisionOf(9), files: [] });
  for (let second = 0; second < 5; second++) fleet.clock.advance(1_000);
  resolve();
  await fleet.pass(5);
  t.is(fleet.text.writes, 3, 'the steps, what is in force, and what is held back');
});

test('a leader that queries its peers is alive, even if it changes nothing for long', async (t) => {
  const fleet = await startWithSecond(t, {
    planes: ['a', 'b'],
    plan: 'canary=50%,hold=1h',
    workers: 40,
  });
  await fleet.pass(10);
  const leader = fleet.readRecord()?.leader.name ?? '';
  const follower = fleet.planes.get(leader === 'a' ? 'b' : 'a');
  fleet.standStill(leader);
  fleet.effects.set(2, { overLimit: 1 });
  for (let second = 0; second < 6; second++) {
    follower?.rollout.answerPeer(follower.keeper.contentId);
    await fleet.pass(1);
  }
  t.is(fleet.readRecord()?.rollout?.outcome, 'running');
  await fleet.pass(6);
  t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
});

test('a control plane that is stopped without a rollout notifies no peer', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  await fleet.pass(10);
  fleet.questions.length = 0;
  await fleet.stopPlane('a', 'b');
  t.deepEqual(fleet.questions, []);
});

test('a control plane that cannot hand over is stopped after three seconds', async (t) => {
  const fleet = await startWithSecond(t, {});
  await fleet.pass(5);
  const { swap } = fleet.text;
  const { promise, resolve } = Promise.withResolvers<void>();
  fleet.text.swap = async (...args) => {
    await promise;
    return swap(...args);
  };
  let isStopped = false;
  const stopping = fleet.plane.rollout.stop().then(() => {
    isStopped = true;
  });
  fleet.clock.advance(2_999);
  await new Promise(setImmediate);
  t.false(isStopped);
  fleet.clock.advance(1);
  await new Promise(setImmediate);
  t.true(isStopped);
  resolve();
  await stopping;
});

test('a rollout does not begin if another control plane takes the revision back at that moment', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  const { id } = revisionOf(2);
  fleet.text.onWrite = () => {
    fleet.text.onWrite = undefined;
    const content = fleet.plane.cache.state().trial?.content ?? '';
    const verdict = { revision: id, content, outcome: 'taken_back', reason: 'bad' } as const;
    const record = fleet.readRecord() ?? emptyRecord;
    fleet.text.content = toRecordText(withVerdict(record, { ...verdict, by: '', atMs: 1 }));
    fleet.text.writes++;
    return undefined;
  };
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  t.is(fleet.readRecord()?.rollout, null);
  t.deepEqual(fleet.having(2), []);
  for (const { cache } of fleet.planes.values()) {
    const { newest } = cache.state();
    t.true(newest?.problems.some(({ rule }) => rule === 'taken-back'));
  }
});

test('a rollout ends even if an effect of its end fails', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  t.is(fleet.having(2).length, 2);
  let failures = 0;
  const end = fleet.plane.cache.onChange(() => {
    failures++;
    throw new Error('a listener has a defect');
  });
  const asked = async () => fleet.plane.rollout.act('abort', 'a typo', 'ada');
  await t.throwsAsync(asked, { message: 'a listener has a defect' });
  t.is(failures, 1);
  end();
  await fleet.pass(5);
  t.is(fleet.having(2).length, 0);
  t.is(fleet.plane.rollout.state(), undefined);
  t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
});
