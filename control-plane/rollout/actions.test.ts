// One control plane with twenty workers: what becomes of a revision, and what people may do.
import test from 'ava';
import { revisionOf } from '../../test/support/revision-store.ts';
import { ruleText } from '../../test/support/rules-folder.ts';
import { type SimulatedFleet, startSimulatedFleet } from '../../test/support/simulated-fleet.ts';

const outcomeOf = (fleet: SimulatedFleet) => fleet.readRecord()?.rollout?.outcome;
const revisionWith = (number: number, limits: number) => ({
  ...revisionOf(number),
  files: Array.from({ length: limits }, (_, index) => ({
    path: `${index}.yaml`,
    text: ruleText(index === 0 ? `revision-${number}` : `domain-${index}`, 1),
  })),
});
const empty = { ...revisionOf(9), files: [] };
const act = (
  fleet: SimulatedFleet,
  ...args: Parameters<SimulatedFleet['plane']['rollout']['act']>
) => fleet.plane.rollout.act(...args);

test('a revision that waits comes after the end of the rollout before it', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(62);
  t.is(fleet.having(2).length + fleet.having(3).length, 20);
  t.is(fleet.plane.cache.state().inForce?.revision.id, revisionOf(2).id);
  await fleet.pass(70);
  t.is(fleet.having(3).length, 20);
});

test('a revision that is undone before its rollout has begun reaches nobody', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.text.mode = 'away';
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.plane.rollout.undo('undone by ops: a typo', 'ops');
  fleet.text.mode = 'fine';
  await fleet.pass(100);
  t.false(fleet.workers.some(({ told }) => told?.resources.has('revision-2')));
  t.like(fleet.readRecord()?.rollout, {
    revision: revisionOf(2).id,
    outcome: 'taken_back',
    reason: 'undone by ops: a typo',
  });
  t.is(fleet.plane.rollout.state(), undefined);
});

test('a rollout that is aborted while the record cannot be written stays so over a restart, and that is on record then', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.text.mode = 'away';
  t.regex(
    (await act(fleet, 'abort', 'wrong file', 'ops')) ?? '',
    /cannot be written \(no route to it\); the workers of this control plane go back all the same$/,
  );
  await fleet.pass(1);
  t.is(fleet.having(2).length, 0, 'it is at once here');
  for (const restart of ['away', 'fine'] as const) {
    fleet.text.mode = restart;
    fleet.killPlane('a');
    await fleet.startPlane('a');
    for (const worker of fleet.workers) fleet.connect(worker, 'a');
    await fleet.pass(60);
    t.is(fleet.having(2).length, 0, restart);
  }
  t.like(fleet.readRecord()?.rollout, { outcome: 'taken_back', reason: 'wrong file' });
});

test('aborted: nobody has it any more, and why and by whom is on record', async (t) => {
  const fleet = await startSimulatedFleet(t);
  t.is(await act(fleet, 'abort', 'wrong file', 'ops'), 'no rollout is under way');
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  t.is(await act(fleet, 'abort', 'wrong file', 'token ops'), undefined);
  await fleet.pass(1);
  t.is(fleet.having(2).length, 0);
  t.like(fleet.readRecord()?.verdicts[0], {
    outcome: 'taken_back',
    reason: 'wrong file',
    by: 'token ops',
  });
  t.like(fleet.plane.rollout.memory().words[0], { outcome: 'taken_back', reason: 'wrong file' });
  t.deepEqual(fleet.events, [], 'the audit log has who did it');
});

test('before the rollout of a revision is on record there is nothing to pause', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  t.is(await act(fleet, 'pause', 'lunch', 'ops'), 'no rollout is under way');
});

test('an undo where nothing is on its way changes nothing', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.plane.rollout.undo('undone by ops: a typo', 'ops');
  await fleet.pass(3);
  t.is(fleet.having(1).length, 20);
  t.is(fleet.readRecord()?.rollout, null);
});

test('an undo ends the rollout on record also where its revision is not known yet', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  fleet.delayMs.set('b', 1_000_000);
  fleet.store.publish(revisionOf(2));
  await fleet.settle();
  const b = fleet.planes.get('b');
  t.is(b?.rollout.state(), undefined);
  await fleet.pass(1);
  b?.rollout.undo('undone by ops: a typo', 'ops');
  await fleet.pass(2);
  t.is(outcomeOf(fleet), 'taken_back');
});

test('an approval at a control plane that does not lead lets a revision through that has no share', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], workers: 1 });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(40);
  const follower = [...fleet.planes.values()].find(({ keeper }) => !keeper.leads);
  t.is(
    await follower?.rollout.approve(revisionOf(1).id, 'it is a test', 'ops'),
    'revision 000000000000 is not the newest one, which is 000000000000',
  );
  t.is(await follower?.rollout.approve(revisionOf(2).id, 'it is a test', 'ops'), undefined);
  await fleet.pass(3);
  t.is(fleet.having(2).length, 1);
  t.is(
    await follower?.rollout.approve(revisionOf(2).id, 'it is a test', 'ops'),
    'revision 000000000000 is not held back',
  );
});

test('an action that cannot be written is told to the one who asked for it', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.text.mode = 'away';
  t.regex(
    (await act(fleet, 'pause', 'lunch', 'ops')) ?? '',
    /^the shared record cannot be written \(no route to it\)$/,
  );
  await fleet.pass(2);
  t.regex(fleet.plane.rollout.state()?.text ?? '', /^the shared record cannot be /);
  t.regex(fleet.plane.rollout.memory().trouble ?? '', /cannot be/);
});

test('a revision that is held back comes through when somebody approves it, in steps', async (t) => {
  const fleet = await startSimulatedFleet(t);
  const { rollout } = fleet.plane;
  fleet.store.publish(empty);
  await fleet.pass(3);
  t.like(fleet.readRecord()?.verdicts[0], { revision: empty.id, outcome: 'held_back', by: '' });
  t.regex(fleet.readRecord()?.verdicts[0]?.reason ?? '', /^held back: no domain would be left/);
  t.is(
    await rollout.approve('f'.repeat(40), 'meant', 'ops'),
    'revision ffffffffffff is not the newest one, which is 000000000000',
  );
  t.is(await rollout.approve(empty.id, 'meant', 'token ops'), undefined);
  t.like(fleet.readRecord()?.verdicts[0], {
    revision: empty.id,
    outcome: 'approved',
    reason: 'meant',
    by: 'token ops',
  });
  t.is(await rollout.approve(empty.id, 'meant', 'ops'), 'revision 000000000000 is not held back');
  await fleet.pass(3);
  t.is(fleet.having(1).length, 18);
  await fleet.stopPlane('a');
  await fleet.startPlane('a', true);
  for (const worker of fleet.workers) fleet.connect(worker, 'a');
  await fleet.pass(3);
  t.is(fleet.having(1).length, 18, 'who starts meanwhile knows of it');
  await fleet.pass(80);
  t.is(fleet.having(1).length, 0);
});

test('an approval during a rollout counts when that is over', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  fleet.store.publish(empty);
  await fleet.pass(3);
  t.is(await fleet.plane.rollout.approve(empty.id, 'meant', 'ops'), undefined);
  await fleet.pass(150);
  t.is(fleet.having(1).length + fleet.having(2).length, 0);
});

test('a removal that was approved once is held back when it comes again', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: '' });
  fleet.store.publish(revisionWith(2, 15));
  await fleet.pass(2);
  fleet.store.publish({ ...empty, id: '8'.repeat(40) });
  await fleet.pass(2);
  t.is(await fleet.plane.rollout.approve('8'.repeat(40), 'meant', 'ops'), undefined);
  await fleet.pass(2);
  t.is(fleet.having(2).length, 0);
  fleet.store.publish(revisionWith(3, 15));
  await fleet.pass(2);
  fleet.store.publish(empty);
  await fleet.pass(2);
  t.is(fleet.having(3).length, 20);
  t.true(fleet.plane.cache.state().newest?.isHeldBack);
});

test('without a rollout there is none, and everybody gets a revision at once', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: '' });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(1);
  t.is(fleet.having(2).length, 20);
  t.is(fleet.plane.rollout.plan, undefined);
  t.is(fleet.readRecord(), undefined, 'nothing has to be remembered');
  t.is(await act(fleet, 'pause', '', 'ops'), 'no rollout is under way');
});

test('where something fails while a rollout is ended, it is ended all the same', async (t) => {
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
