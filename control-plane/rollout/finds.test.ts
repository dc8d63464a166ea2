// Found by random walks (test/faults/rollout-walk), each with no more than it takes.
import test from 'ava';
import { revisionOf } from '../../test/support/revision-store.ts';
import { startSimulatedFleet } from '../../test/support/simulated-fleet.ts';
import { emptyRecord, toRecordText, withVerdict } from '../record/record.ts';
import { gitTiming } from '../record/record-keeper.ts';
import type { Revision } from '../store/revision.ts';

/** The content of `before` under a new id. */
function again(number: number, before: number, message?: string): Revision {
  return { ...revisionOf(before, message), id: revisionOf(number).id };
}

/** Removes every rule, and is held back. */
function removal(number: number): Revision {
  return { ...revisionOf(number), files: [] };
}

test('the revision in force at the start is on record again when it comes back after another one', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(3);
  fleet.store.publish(removal(3));
  t.is(await fleet.plane.rollout.act('promote', 'it is good', 'Ann'), undefined);
  await fleet.pass(3);
  fleet.store.publish(again(4, 1));
  await fleet.pass(3);
  t.is(fleet.having(1).length, 20);
  t.is(fleet.readRecord()?.inForce[0]?.revision, revisionOf(4).id);
});

test('a revision that was promoted while a control plane stood still does not begin again there', async (t) => {
  const fleet = await startSimulatedFleet(t, {
    planes: ['a', 'b', 'c'],
    effects: new Map([[2, { overLimit: 1 }]]),
  });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(8);
  fleet.standStill('b');
  await fleet.pass(8);
  t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
  fleet.store.publish(revisionOf(3));
  await fleet.pass(3);
  fleet.goOn('b');
  await fleet.settle();
  t.is(await fleet.planes.get('b')?.rollout.act('promote', 'it is good', 'Ann'), undefined);
  await fleet.pass(3);
  t.is(fleet.readRecord()?.rollout?.outcome, 'in_force');
  t.is(fleet.having(3).length, 20);
});

test('an undo that is followed at once by another change is on record as what is in force', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2, 'in a hurry\n\nRollout: now'));
  await fleet.pass(3);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(3);
  fleet.store.publish(again(4, 1));
  fleet.store.publish(revisionOf(5));
  await fleet.pass(3);
  t.is(fleet.readRecord()?.rollout?.revision, revisionOf(5).id);
  t.is(fleet.readRecord()?.inForce[0]?.revision, revisionOf(4).id);
});

test('a control plane that has missed what came into force serves it all the same', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  fleet.standStill('b');
  fleet.store.publish(revisionOf(2, 'in a hurry\n\nRollout: now'));
  await fleet.pass(3);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(3);
  fleet.goOn('b');
  await fleet.pass(10);
  const b = fleet.planes.get('b');
  t.is(b?.cache.state().inForce?.revision.id, revisionOf(2).id);
  t.is(b?.cache.state().trial?.revision.id, revisionOf(3).id);
});

test('a control plane follows the rollout of a revision that it holds to be taken back', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(3);
  await fleet.plane.rollout.act('abort', 'not now', 'Ann');
  await fleet.pass(3);
  // It sees the two of them as one change, to what it has last seen.
  fleet.delayMs.set('b', 5_000);
  fleet.store.publish(again(3, 1));
  await fleet.pass(3);
  fleet.store.publish(again(4, 2));
  await fleet.pass(10);
  t.is(fleet.readRecord()?.rollout?.outcome, 'running');
  t.is(fleet.planes.get('b')?.cache.state().trial?.revision.id, revisionOf(4).id);
});

test('a rollout gives way to a newer revision where a peer cannot get its revision any more', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], forgetsHistory: true });
  fleet.reach.set('b', 'away');
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(5);
  fleet.reach.delete('b');
  await fleet.pass(15);
  t.is(fleet.readRecord()?.rollout?.revision, revisionOf(3).id);
  t.is(fleet.having(2).length, 0);
  await fleet.pass(80);
  t.is(fleet.having(3).length, 20);
});

test('a control plane without state gives nobody a revision before it has read the record', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(3);
  await fleet.plane.rollout.act('abort', 'not now', 'Ann');
  await fleet.pass(3);
  fleet.killPlane('a');
  fleet.reach.set('a', 'away');
  await fleet.startPlane('a', true);
  for (const worker of fleet.workers) fleet.connect(worker, 'a');
  await fleet.pass(3);
  // The rules are there before the record is.
  fleet.text.mode = 'away';
  fleet.reach.delete('a');
  await fleet.pass(5);
  t.is(fleet.having(2).length, 0);
  fleet.text.mode = 'fine';
  await fleet.pass(5);
  t.is(fleet.having(2).length, 0);
  t.is(fleet.plane.cache.state().inForce?.revision.id, revisionOf(1).id);
  t.is(fleet.plane.cache.state().newest?.valid, false);
});

test('a revision for everybody that arrives while another one is looked for replaces it', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(1);
  t.is(fleet.readRecord()?.rollout?.outcome, 'running');
  fleet.killPlane('a');
  fleet.store.publish(revisionOf(3));
  await fleet.startPlane('a');
  fleet.store.publish(revisionOf(4, 'in a hurry\n\nRollout: now'));
  for (const worker of fleet.workers) fleet.connect(worker, 'a');
  await fleet.pass(50);
  t.is(fleet.having(4).length, 20);
  t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
});

for (const seconds of [0, 1, 3]) {
  test(`a revision that came into force before the first rollout is served by a control plane that missed it, back after ${seconds} s`, async (t) => {
    const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], timing: gitTiming });
    fleet.reach.set('b', 'away');
    fleet.store.publish(revisionOf(2, 'in a hurry\n\nRollout: now'));
    await fleet.pass(1);
    t.is(fleet.having(2).length, 10);
    fleet.store.publish(again(3, 2));
    await fleet.pass(seconds);
    fleet.reach.delete('b');
    await fleet.pass(10);
    t.is(fleet.having(2).length, 20);
    t.is(fleet.readRecord()?.rollout, null);
  });
}

test('an abort is not passed over by a control plane that had still to learn of the end before it', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], plan: 'canary=10%,hold=1h' });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(8);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(2);
  const a = fleet.planes.get('a');
  // b looks again when both are over.
  fleet.standStill('b');
  t.is(await a?.rollout.act('abort', 'bad', 'Ann'), undefined);
  await fleet.pass(1);
  t.is(fleet.readRecord()?.rollout?.revision, revisionOf(3).id);
  t.is(await a?.rollout.act('abort', 'bad as well', 'Ann'), undefined);
  fleet.goOn('b');
  await fleet.pass(30);
  t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
  t.is(fleet.readRecord()?.verdicts[0]?.reason, 'bad as well');
  t.is(fleet.having(1).length, 20);
});

test('a revision taken back before a control plane noticed it is not tried again by that one', async (t) => {
  const fleet = await startSimulatedFleet(t, {
    planes: ['a', 'b'],
    plan: 'canary=10%,hold=1h',
  });
  // Not the first revision that b sees.
  fleet.store.publish(revisionOf(2, 'in a hurry\n\nRollout: now'));
  await fleet.pass(3);
  const [a, b] = [...fleet.planes.values()];
  if (b !== undefined) b.isCutOff = true;
  fleet.delayMs.set('b', 20_000);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(2);
  t.is(await a?.rollout.act('abort', 'bad', 'Ann'), undefined);
  if (b !== undefined) b.isCutOff = false;
  await fleet.pass(3);
  t.is(b?.keeper.record.rollout?.outcome, 'taken_back');
  t.is(b?.cache.state().newest?.revision.id, revisionOf(2).id);
  fleet.delayMs.delete('b');
  await fleet.pass(30);
  t.is(fleet.log.lines.filter((line) => line.includes('begins')).length, 1);
  t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
  const { newest } = b?.cache.state() ?? {};
  t.true(newest?.problems.some(({ rule }) => rule === 'taken-back'));
});

test('an undo that could not be put on record is not lost when another revision follows', async (t) => {
  const fleet = await startSimulatedFleet(t, {
    planes: ['a', 'b'],
    plan: 'canary=10%,hold=1h',
    timing: gitTiming,
  });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(20);
  t.is(fleet.having(2).length, 2);
  for (const name of ['a', 'b']) fleet.reach.set(name, 'denied');
  fleet.store.publish(again(3, 1));
  await fleet.pass(2);
  t.is(fleet.having(2).length, 0);
  fleet.store.publish(revisionOf(4));
  for (let second = 0; second < 15; second++) {
    await fleet.pass(1);
    t.is(fleet.having(2).length, 0, `after ${second} s`);
  }
});

test('a revision that another control plane takes back at the moment of its beginning does not begin', async (t) => {
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

test('an undo in steps is in steps, too, where the change that it undoes had not arrived', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], plan: 'canary=10%,hold=1h' });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(8);
  fleet.standStill('b');
  t.is(await fleet.plane.rollout.act('promote', 'it is good', 'Ann'), undefined);
  await fleet.pass(2);
  fleet.store.publish(again(3, 1, 'back\n\nRollout: steps'));
  await fleet.pass(1);
  fleet.goOn('b');
  await fleet.pass(20);
  t.is(fleet.readRecord()?.rollout?.revision, revisionOf(3).id);
  t.is(fleet.having(2).length, 18);
});

test('an undo in steps that has been aborted is undone, too, where the change before it had not arrived', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], plan: 'canary=10%,hold=1h' });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(8);
  fleet.standStill('b');
  t.is(await fleet.plane.rollout.act('promote', 'it is good', 'Ann'), undefined);
  await fleet.pass(2);
  fleet.store.publish(again(3, 1, 'back\n\nRollout: steps'));
  await fleet.pass(2);
  t.is(await fleet.plane.rollout.act('abort', 'not yet', 'Ann'), undefined);
  await fleet.pass(1);
  fleet.goOn('b');
  await fleet.pass(20);
  t.is(fleet.having(2).length, 20);
  const newest = fleet.planes.get('b')?.cache.state().newest;
  t.true(newest?.problems.some(({ message }) => message === 'taken back: not yet'));
});

test('workers that go to a peer that answers slowly are not gone', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], peerMs: 1_500 });
  fleet.store.publish(revisionOf(2));
  // They leave when the peer has just been asked.
  await fleet.pass(8);
  const having = fleet.having(2);
  t.is(having.length, 2);
  const leader = [...fleet.planes.values()].find(({ keeper }) => keeper.leads)?.name;
  for (const worker of having) {
    fleet.disconnect(worker, 'broken');
    fleet.connect(worker, leader === 'a' ? 'b' : 'a');
  }
  await fleet.pass(10);
  t.is(fleet.readRecord()?.rollout?.outcome, 'running');
  t.deepEqual(fleet.having(2), having);
});

test('an undo in steps that arrives in the middle of another rollout is in steps', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2, 'in a hurry\n\nRollout: now'));
  await fleet.pass(3);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(1);
  t.is(fleet.readRecord()?.rollout?.outcome, 'running');
  fleet.killPlane('a');
  fleet.store.publish(again(4, 1, 'back\n\nRollout: steps'));
  await fleet.startPlane('a');
  for (const worker of fleet.workers) fleet.connect(worker, 'a');
  await fleet.pass(1);
  t.deepEqual(fleet.having(1), []);
  t.is(await fleet.plane.rollout.act('promote', 'it is good', 'Ann'), undefined);
  await fleet.pass(10);
  t.is(fleet.readRecord()?.rollout?.revision, revisionOf(4).id);
  t.is(fleet.having(1).length, 2);
});

// Proof of operating.md: a peer cannot follow: it is new, and its directory has newer rules, which are invalid
// or held back
test('a rollout that a new control plane cannot follow, as the newest rules are held back, waits for somebody and says so', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], forgetsHistory: true });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(8);
  fleet.store.publish(removal(3));
  await fleet.pass(2);
  await fleet.stopPlane('b', 'a');
  await fleet.startPlane('b', true);
  await fleet.pass(8);
  const { outcome, reason } = fleet.readRecord()?.rollout ?? {};
  t.is(outcome, 'paused');
  t.regex(reason ?? '', /^another control plane cannot follow, /);
  t.is(await fleet.plane.rollout.act('promote', 'it is good', 'Ann'), undefined);
  await fleet.pass(8);
  t.is(fleet.having(2).length, 20);
  t.is(fleet.plane.cache.state().inForce?.revision.id, revisionOf(2).id);
});
