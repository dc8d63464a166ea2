// The revisions that a control plane serves and searches for, also by a record that others wrote.

import test from 'ava';
import { revisionOf } from '../../../test/support/revision-store.ts';
import { type SimulatedFleet, startSimulatedFleet } from '../../../test/support/simulated-fleet.ts';
import { emptyRecord, toRecordText, withVerdict } from '../record/record.ts';
import { gitTiming } from '../record/record-keeper.ts';

/** Counts how often a revision is read. */
function countReads({ store }: SimulatedFleet, revision: string) {
  const { readRevision } = store;
  const counted = { reads: 0, isThere: true };
  store.readRevision = async (id) => {
    if (id !== revision) return readRevision(id);
    counted.reads++;
    return counted.isThere ? readRevision(id) : undefined;
  };
  return counted;
}

test('while a share does not change, streams are not refreshed', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  let changes = 0;
  fleet.plane.cache.onChange(() => changes++);
  await fleet.pass(10);
  t.is(changes, 0);
});

test('a revision on record that is not in the store is searched for every five seconds', async (t) => {
  const fleet = await startSimulatedFleet(t, { timing: gitTiming });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(2);
  const { rollout, ...record } = fleet.readRecord() ?? emptyRecord;
  const unknown = rollout && { ...rollout, id: 'other', revision: '7'.repeat(40), content: '7' };
  const leader = { id: 'other', plane: 'other', name: 'other:1', hasLeft: false };
  fleet.text.content = toRecordText({ ...record, rollout: unknown, leader });
  fleet.text.writes++;
  await fleet.pass(5);
  t.is(fleet.plane.keeper.record.rollout?.id, 'other');
  t.true(fleet.plane.rollout.answerPeer(undefined).lacks);
  t.is(fleet.plane.rollout.answerPeer(undefined).serves, null);
  const counted = countReads(fleet, '7'.repeat(40));
  let changes = 0;
  fleet.plane.cache.onChange(() => changes++);
  await fleet.pass(16);
  t.is(counted.reads, 3);
  t.is(changes, 0, 'streams are refreshed once, not at each check');
});

test('a revision that was searched for and found is not reported as missing', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  fleet.delayMs.set('b', 1_000_000);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  const b = fleet.planes.get('b');
  t.is(b?.cache.state().trial?.revision.id, revisionOf(2).id);
  const { lacks, serves, record } = b?.rollout.answerPeer(undefined) ?? {};
  t.deepEqual([lacks, serves], [false, record]);
  await fleet.plane.rollout.act('promote', 'it is good', 'Ann');
  await fleet.pass(3);
  t.false(b?.rollout.answerPeer(undefined).lacks);
});

test('a revision that came into force elsewhere is searched for every five seconds until it is found', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  fleet.store.publish(revisionOf(4, 'in a hurry\n\nRollout: now'));
  await fleet.pass(3);
  fleet.standStill('b');
  fleet.store.publish(revisionOf(2, 'in a hurry\n\nRollout: now'));
  await fleet.pass(3);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(3);
  const counted = countReads(fleet, revisionOf(2).id);
  counted.isThere = false;
  fleet.resume('b');
  await fleet.settle();
  await fleet.pass(12);
  t.is(counted.reads, 3);
  const inForce = () => fleet.planes.get('b')?.cache.state().inForce?.revision.id;
  t.is(inForce(), revisionOf(4).id);
  counted.isThere = true;
  await fleet.pass(5);
  t.is(inForce(), revisionOf(2).id);
  const { reads } = counted;
  await fleet.pass(12);
  t.is(counted.reads, reads, 'what is there is not read again');
});

test('a revision in force on record whose content has another name in another version is not searched for', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  await fleet.plane.rollout.act('promote', 'it is good', 'Ann');
  await fleet.pass(3);
  const record = fleet.readRecord() ?? emptyRecord;
  const inForce = record.inForce.map(({ revision }) => ({ revision, content: 'otherwise' }));
  fleet.text.content = toRecordText({ ...record, inForce });
  fleet.text.writes++;
  const counted = countReads(fleet, revisionOf(2).id);
  await fleet.pass(12);
  t.is(fleet.plane.keeper.record.inForce[0]?.content, 'otherwise');
  t.is(counted.reads, 0);
});

test('a revision that is held back or taken back is examined again only after a new verdict', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish({ ...revisionOf(9), files: [] });
  await fleet.pass(10);
  t.is(fleet.plane.cache.state().counts.refused, 1);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  await fleet.plane.rollout.act('abort', 'wrong', 'ops');
  await fleet.pass(10);
  t.is(fleet.plane.cache.state().counts.refused, 1);
  t.is(fleet.plane.cache.state().counts.takenBack, 1);
});

test('during the rollout of another revision no worker gets the newer one that is known here', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], timing: gitTiming });
  fleet.reach.set('b', 'away');
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.store.publish(revisionOf(3));
  let hasGot = false;
  fleet.planes.get('b')?.cache.onChange(() => {
    hasGot ||= fleet.workers.some(({ notified }) => notified?.resources.has('revision-3'));
  });
  fleet.reach.delete('b');
  await fleet.pass(15);
  t.false(hasGot);
  t.is(fleet.planes.get('b')?.cache.state().trial?.revision.id, revisionOf(2).id);
});

test('a revision that waits here and was taken back elsewhere is reported with the reason before its turn', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=10%,hold=1h' });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(2);
  const { newest } = fleet.plane.cache.state();
  t.true(newest?.isWaiting);
  const verdict = {
    outcome: 'taken_back' as const,
    revision: revisionOf(3).id,
    content: newest?.content ?? '',
    reason: 'errors 100 %',
    by: 'other:1',
    atMs: 1,
    rollout: 'other',
  };
  fleet.text.content = toRecordText(withVerdict(fleet.readRecord() ?? emptyRecord, verdict));
  fleet.text.writes++;
  await fleet.pass(12);
  const now = fleet.plane.cache.state().newest;
  t.like(now, { isWaiting: false, valid: false });
  t.regex(now?.problems[0]?.message ?? '', /errors 100 %/);
});

test('a revision in force on record is no longer on trial, and does not replace one that followed at once', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], plan: 'canary=10%,hold=1h' });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(7);
  fleet.standStill('b');
  await fleet.plane.rollout.act('promote', 'it is good', 'Ann');
  // The control plane learns of the revision only from the record.
  fleet.delayMs.set('b', 1_000_000);
  fleet.store.publish(revisionOf(3, 'in a hurry\n\nRollout: now'));
  await fleet.pass(2);
  fleet.resume('b');
  const b = fleet.planes.get('b')?.cache;
  let isTriedBeside = false;
  b?.onChange(() => {
    const { inForce, trial } = b.state();
    isTriedBeside ||= inForce?.revision.id === revisionOf(3).id && trial !== undefined;
  });
  await fleet.pass(3);
  t.false(isTriedBeside);
  t.is(fleet.having(3).length, 20);
  t.is(fleet.readRecord()?.inForce[0]?.revision, revisionOf(3).id);
});
