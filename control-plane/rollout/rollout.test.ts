// The rollout of a revision over real snapshots and a real record, with workers, traffic and time of the test's own.
import test, { type ExecutionContext } from 'ava';
import { revisionOf } from '../../test/support/revision-store.ts';
import {
  type Effect,
  type FleetOptions,
  type SimulatedFleet,
  startSimulatedFleet,
} from '../../test/support/simulated-fleet.ts';
import { emptyRecord, toRecordText, withEnd } from '../record/record.ts';
import { gitTiming } from '../record/record-keeper.ts';
import type { Revision } from '../store/revision.ts';

const refused: Effect = { isRefused: true };
const limiting: Effect = { overLimit: 0.5 };
const failing: Effect = { errors: 0.05 };

/** With the second revision on its way, which has this effect. */
async function startWithSecond(
  t: ExecutionContext,
  effect: Effect,
  options: FleetOptions = {},
): Promise<SimulatedFleet> {
  const fleet = await startSimulatedFleet(t, options);
  fleet.effects.set(2, effect);
  fleet.store.publish(revisionOf(2));
  return fleet;
}

const count = (fleet: SimulatedFleet, number: number) => fleet.having(number).length;
const state = (fleet: SimulatedFleet) => fleet.plane.rollout.state();
const newestProblem = (fleet: SimulatedFleet) =>
  fleet.plane.cache.state().newest?.problems.at(-1)?.message ?? '';
const linesOf = (fleet: SimulatedFleet) =>
  fleet.log.lines.filter((line) => line.includes('Rollout'));
/** The rules of a revision under another id. */
const again = (number: number, id: string, message?: string): Revision => ({
  ...revisionOf(number, message),
  id: id.repeat(40),
});

/** How many seconds pass until it is so. */
async function passUntil(
  fleet: SimulatedFleet,
  isSo: () => boolean,
  most: number,
): Promise<number> {
  for (let second = 0; second <= most; second++) {
    if (isSo()) return second;
    await fleet.pass(1);
  }
  return Number.POSITIVE_INFINITY;
}

// Proof of operating.md: all workers of the step have it, and stay within the bounds beside the others
test('a share of the workers gets a revision first, and the others when they have held it', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: '5%:30s,25%:60s,100%', workers: 100 });
  await fleet.pass(2);
  const first = fleet.having(2);
  t.is(first.length, 5);
  t.like(state(fleet), { step: 1, steps: 3, phase: 'holding' });
  t.is(state(fleet)?.leader, undefined, 'there is no other control plane');
  await fleet.pass(27);
  t.is(count(fleet, 2), 5);
  await fleet.pass(6);
  t.is(count(fleet, 2), 25);
  t.true(first.every((worker) => fleet.having(2).includes(worker)));
  await fleet.pass(65);
  t.is(count(fleet, 2), 100);
  t.is(state(fleet), undefined);
  t.is(fleet.plane.cache.state().inForce?.revision.id, revisionOf(2).id);
});

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

// Proof of operating.md: a third of the workers of the step or more refuse it
// Proof of SECURITY.md: pauses a revision by refusing it; a third of a step takes it back
test('a revision that a third of the share refuses is taken back at once, and no more than the share saw it', async (t) => {
  const fleet = await startWithSecond(t, refused, { workers: 50 });
  t.true((await passUntil(fleet, () => state(fleet) === undefined, 20)) <= 5);
  t.regex(
    newestProblem(fleet),
    /^taken back: worker 'worker-\d+' refuses it: no such unit; 5 workers had it$/,
  );
  t.is(fleet.workers.filter(({ told }) => told?.resources.has('revision-2')).length, 0);
  t.regex(fleet.events.join(), /^take back revision 0+: worker 'worker-\d+' refuses it/);
});

// Proof of operating.md: fewer refuse it, and others have accepted it
// Proof of SECURITY.md: pauses a revision by refusing it; a third of a step takes it back
test('a revision that fewer than a third refuse and others have accepted is paused with the name', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=25%,hold=10s' });
  fleet.store.publish(revisionOf(2));
  const told = fleet.workers.filter((worker) => worker.told?.resources.has('revision-2'));
  t.is(told.length, 0, 'the share is on record first');
  fleet.clock.advance(1_000);
  await fleet.settle();
  const [one] = fleet.workers.filter((worker) => worker.told?.resources.has('revision-2'));
  if (one !== undefined) one.answer = 'refuse';
  await fleet.pass(5);
  t.like(state(fleet), { phase: 'paused' });
  t.is(
    state(fleet)?.text,
    `worker '${one?.id}' refuses it: no such unit; 4 other workers accepted it`,
  );
  await fleet.pass(60);
  t.is(count(fleet, 2), 4);
  t.regex(
    linesOf(fleet).at(-1) ?? '',
    /^warning .*: paused \(worker .* accepted it\); 'rollout resume', 'promote' or 'abort' goes on$/,
  );
  t.is(await fleet.plane.rollout.act('promote', 'it is its own matter', 'ada'), undefined);
  await fleet.pass(2);
  t.is(count(fleet, 2), 19);
});

for (const [what, effect, text] of [
  [
    'refuses far more requests',
    limiting,
    /over limit 50\.0 % where it is, 0\.0 % elsewhere \(\d+ decisions/,
  ],
  ['makes decisions fail', failing, /errors 5\.0 % where it is, 0\.0 % elsewhere/],
  ['makes all decisions fail', { errors: 1 }, /errors 100\.0 % where it is/],
] as const) {
  test(`a revision that ${what} is taken back within five seconds of the evidence`, async (t) => {
    const fleet = await startWithSecond(t, effect, { plan: 'canary=20%,hold=1h' });
    t.is((await passUntil(fleet, () => count(fleet, 2) > 0, 10)) <= 2, true);
    t.true((await passUntil(fleet, () => count(fleet, 2) === 0, 20)) <= 5);
    t.regex(newestProblem(fleet), text);
  });
}

// Proof of operating.md: a worker of the step gives no answer
test('a worker that never answers keeps the others from getting it, and does not hide that it is bad', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=20%,hold=10s' });
  fleet.store.publish(revisionOf(2));
  fleet.clock.advance(1_000);
  await fleet.settle();
  const [one] = fleet.workers.filter((worker) => worker.told?.resources.has('revision-2'));
  if (one !== undefined) one.answer = 'ignore';
  await fleet.pass(100);
  t.is(count(fleet, 2), 3);
  t.is(state(fleet)?.text, `waits for 1 worker, such as '${one?.id}'`);
  fleet.effects.set(2, { overLimit: 1 });
  t.true((await passUntil(fleet, () => count(fleet, 2) === 0, 60)) <= 30);
});

// Proof of operating.md: a peer gives no answer
test('a peer that gives no answer keeps the rollout where it is, and does not hide that it is bad', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=50%,hold=10s', planes: ['a', 'b'] });
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  t.is(count(fleet, 2), 10);
  const leader = [...fleet.planes.values()].find(({ keeper }) => keeper.leads);
  const other = leader?.name === 'a' ? 'b' : 'a';
  const cutOff = fleet.planes.get(other);
  if (cutOff !== undefined) cutOff.isCutOff = true;
  await fleet.pass(60);
  t.regex(
    leader?.rollout.state()?.text ?? '',
    new RegExp(`^waits for peer ${other}, which gives no answer`),
  );
  t.is(count(fleet, 2), 10);
  fleet.effects.set(2, { overLimit: 1 });
  t.true((await passUntil(fleet, () => count(fleet, 2) === 0, 60)) <= 40);
});

// Proof of operating.md: workers with it vanish without a goodbye: more than a third of them, and more than
// elsewhere
test('workers with it that vanish, more than a third of them and more than elsewhere, have it taken back', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=20%,hold=1h' });
  await fleet.pass(3);
  for (const worker of fleet.having(2).slice(0, 3)) fleet.disconnect(worker, 'broken');
  t.true((await passUntil(fleet, () => state(fleet) === undefined, 20)) <= 5);
  t.is(newestProblem(fleet), 'taken back: 3 of 4 workers with it are gone; 4 workers had it');
});

// Proof of operating.md: all workers of the step leave with a goodbye, or go to another control plane
test('where all workers of the share leave with a goodbye, others get it in their place', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=10%,hold=40s' });
  await fleet.pass(25);
  const first = fleet.having(2);
  for (const worker of first) fleet.disconnect(worker, 'goodbye');
  const second = () => fleet.having(2).filter((worker) => !first.includes(worker));
  await fleet.pass(25);
  t.is(second().length, 0, 'they may come back');
  await fleet.pass(8);
  t.is(second().length, 1, 'ten percent of eighteen');
  t.like(state(fleet), { step: 1, phase: 'holding' });
  await fleet.pass(45);
  t.is(
    fleet.workers.filter(({ plane, has }) => plane && !has?.resources.has('revision-2')).length,
    0,
  );
});

// Proof of operating.md: fewer than 100 requests at all
test('with too little traffic a step is watched twice, and then goes on or waits for somebody', async (t) => {
  for (const onSilence of ['proceed', 'stop']) {
    const fleet = await startSimulatedFleet(t, {
      plan: `canary=10%,hold=20s,on-silence=${onSilence}`,
    });
    for (const worker of fleet.workers) worker.decisionsPerSecond = 0;
    fleet.store.publish(revisionOf(2));
    await fleet.pass(30);
    t.is(count(fleet, 2), 2);
    t.is(state(fleet)?.phase, 'silent');
    await fleet.pass(20);
    t.is(count(fleet, 2), onSilence === 'proceed' ? 20 : 2);
    if (onSilence === 'proceed') continue;
    t.regex(state(fleet)?.text ?? '', /^too little traffic to judge: 0 decisions with it/);
    t.is(await fleet.plane.rollout.act('promote', 'seen by eye', 'ada'), undefined);
    await fleet.pass(1);
    t.is(count(fleet, 2), 20);
  }
});

// Proof of operating.md: workers with it have fewer than 100 requests, where as many others have more: they stall, or
// no caller asks them
test('workers that accept a revision and then stand still pause it, whatever silence is said to mean', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=10%,hold=10s,on-silence=proceed' });
  await fleet.pass(2);
  for (const worker of fleet.having(2)) worker.decisionsPerSecond = 0;
  await fleet.pass(40);
  t.is(count(fleet, 2), 2);
  t.is(state(fleet)?.phase, 'paused');
  t.regex(
    state(fleet)?.text ?? '',
    /^\d+ requests with it, where the others had \d+: they stand still/,
  );
});

test('a revision that makes workers stand still when they load it is taken back', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=20%,hold=10s' });
  for (const worker of fleet.workers) worker.answer = 'ignore';
  fleet.store.publish(revisionOf(2));
  await passUntil(fleet, () => state(fleet)?.step === 1, 20);
  t.true((await passUntil(fleet, () => state(fleet) === undefined, 60)) <= 15);
  t.regex(
    newestProblem(fleet),
    /^taken back: 4 of 4 workers that were offered it give no answer, such as '/,
  );
});

// Proof of operating.md: one worker of three or more with it alone makes the difference
// Proof of SECURITY.md: alone of three or more, with false figures, neither takes a revision back nor passes a
// bad one
test('one worker of several that says something else pauses the rollout with its name, and takes nothing back', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=25%,hold=10s' });
  await fleet.pass(3);
  const [liar] = fleet.having(2);
  if (liar !== undefined) liar.lies = { errors: 1 };
  await fleet.pass(30);
  t.is(count(fleet, 2), 5);
  t.is(state(fleet)?.phase, 'paused');
  t.regex(
    state(fleet)?.text ?? '',
    new RegExp(`^worker '${liar?.id}' alone makes the difference: errors `),
  );
});

// Proof of SECURITY.md: alone of three or more, with false figures, neither takes a revision back nor passes a
// bad one
test('a worker without the revision that claims to be limited does not make a bad one good', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=10%,hold=10s' });
  const [liar] = fleet.workers;
  if (liar !== undefined) {
    liar.decisionsPerSecond = 100_000;
    liar.lies = { overLimit: 1 };
  }
  fleet.effects.set(2, limiting);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(60);
  t.true(count(fleet, 2) <= 2);
});

test('workers that share an id are divided', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=10%,hold=10s', workers: 0 });
  for (let index = 0; index < 20; index++) fleet.addWorker({ id: 'default', plane: 'a' });
  await fleet.pass(10);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(3);
  t.is(count(fleet, 2), 2);
  const names = state(fleet);
  t.like(names, { workers: { having: 2, chosen: 2, others: 18 } });
});

// Proof of operating.md: no share can be made: one worker alone, or workers of other makes
test('where no share can be made the revision waits for an approval, and status says why', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=10%,hold=10s', workers: 0 });
  for (let index = 0; index < 3; index++) {
    fleet.addWorker({ id: 'default', plane: 'a', instance: undefined });
  }
  await fleet.pass(10);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(60);
  t.is(count(fleet, 2), 0);
  t.like(state(fleet), { phase: 'indivisible', step: 0 });
  t.regex(
    state(fleet)?.text ?? '',
    /no share of the workers can be made: none of the 3, such as 'default/,
  );
  t.regex(fleet.log.lines.join('\n'), /warning .*the rollout has no effect/);
  t.is(await fleet.plane.rollout.approve(revisionOf(2).id, 'it is small', 'ada'), undefined);
  await fleet.pass(2);
  t.is(count(fleet, 2), 3);
});

test('a single worker waits for an approval, or gets it where that is wanted', async (t) => {
  const waiting = await startSimulatedFleet(t, { workers: 1 });
  await waiting.pass(40);
  t.regex(waiting.plane.rollout.warning() ?? '', /^the next revision will have to be approved/);
  t.is(
    waiting.log.lines.filter((line) => line.startsWith('warning Rollout: the next revision will'))
      .length,
    1,
  );
  waiting.store.publish(revisionOf(2));
  await waiting.pass(10);
  t.is(waiting.plane.rollout.warning(), undefined, 'it is no more the next one');
  t.is(count(waiting, 2), 0);
  t.regex(state(waiting)?.text ?? '', /no share of the workers can be made: there is only one;/);
  const going = await startSimulatedFleet(t, {
    workers: 1,
    plan: 'canary=10%,on-indivisible=proceed',
  });
  await going.pass(40);
  const foreseen = 'the next revision will reach all workers at once, since no share';
  t.true(going.plane.rollout.warning()?.startsWith(foreseen), going.plane.rollout.warning());
  going.store.publish(revisionOf(2));
  await going.pass(3);
  t.is(count(going, 2), 1);
});

// Proof of operating.md: workers connect later, or again
// Proof of SECURITY.md: cannot choose to be first, or enlarge the share
test('workers that connect later do not make a share larger, however often they do', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=10%,hold=1h' });
  await fleet.pass(3);
  for (let index = 0; index < 60; index++) {
    const worker = fleet.addWorker({ id: `late-${index % 7}`, plane: 'a' });
    await fleet.pass(1);
    if (index % 2 === 0) fleet.disconnect(worker, 'broken');
    t.is(count(fleet, 2), 2);
  }
});

const undos: Readonly<Record<string, (fleet: SimulatedFleet) => void>> = {
  'the rules in force under another id': (fleet: SimulatedFleet) =>
    fleet.store.publish(again(7, 'f')),
  'the very state in force': (fleet: SimulatedFleet) => fleet.store.publish(revisionOf(7)),
  'an older state': (fleet: SimulatedFleet) => fleet.store.publish(again(1, 'e')),
  abort: (fleet: SimulatedFleet) => void fleet.plane.rollout.act('abort', 'wrong', 'ada'),
  'a state for everybody at once': (fleet: SimulatedFleet) =>
    fleet.store.publish(revisionOf(5, 'the shop is down\n\nRollout: now')),
};
for (const [what, publish] of Object.entries(undos)) {
  // Proof of operating.md: an undo: in the files, in Git, with `rollback`, `push --now` or `rollout
  // abort`
  test(`an undo is at once: ${what}`, async (t) => {
    const fleet = await startSimulatedFleet(t, { plan: 'canary=20%,hold=1h', planes: ['a', 'b'] });
    fleet.store.publish(revisionOf(7, 'in force\n\nRollout: now'));
    await fleet.pass(2);
    fleet.store.publish(revisionOf(2));
    await fleet.pass(5);
    t.is(count(fleet, 2), 4);
    publish(fleet);
    t.true((await passUntil(fleet, () => count(fleet, 2) === 0, 20)) <= 10);
    const wanted = what === 'an older state' ? 1 : what.startsWith('a state') ? 5 : 7;
    await fleet.pass(2);
    t.is(count(fleet, wanted), 20);
    for (const { rollout } of fleet.planes.values()) t.is(rollout.state(), undefined);
    await fleet.pass(100);
    t.is(count(fleet, wanted), 20);
    t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
  });
}

// Proof of operating.md: another revision comes
test('a revision that comes during a rollout waits for its end', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=10%,hold=1h' });
  await fleet.pass(3);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(10);
  t.is(count(fleet, 3), 0);
  t.true(fleet.plane.cache.state().newest?.isWaiting);
  await fleet.plane.rollout.act('abort', 'wrong', 'ada');
  await fleet.pass(3);
  t.is(count(fleet, 3), 2);
  t.is(count(fleet, 2), 0);
});

// Proof of operating.md: another revision comes with `--supersede`, or a line `Rollout: supersede` in its
// message
test('a revision may supersede the one on its way', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=10%,hold=1h', planes: ['a', 'b'] });
  await fleet.pass(5);
  fleet.store.publish(revisionOf(3, 'better\n\nRollout: supersede'));
  await fleet.pass(5);
  t.is(count(fleet, 2), 0);
  t.is(count(fleet, 3), 2);
  t.is(fleet.readRecord()?.verdicts[0]?.reason, 'revision 000000000000 has taken its place');
  await fleet.pass(100);
  t.is(count(fleet, 3), 2);
});

// Proof of SECURITY.md: changes rules for all workers, steers rollouts, approves; each by name in the audit log
test('somebody pauses, resumes and aborts, at whichever control plane', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=10%,hold=10s', planes: ['a', 'b'] });
  const [a, b] = [...fleet.planes.values()].map(({ rollout }) => rollout);
  t.is(await a?.act('abort', 'x', 'ada'), 'no rollout is under way');
  fleet.store.publish(revisionOf(2));
  await fleet.pass(5);
  t.is(await a?.act('resume', 'x', 'ada'), 'the rollout is not paused');
  t.is(await b?.act('pause', 'paused by ada: lunch', 'ada'), undefined);
  await fleet.pass(3);
  t.is(await a?.act('pause', 'x', 'ada'), 'the rollout is paused already');
  await fleet.pass(100);
  t.is(count(fleet, 2), 2);
  t.is(a?.state()?.text, 'paused by ada: lunch');
  t.is(await a?.act('resume', 'x', 'ada'), undefined);
  await fleet.pass(3);
  t.is(await b?.act('abort', 'aborted by ada: wrong file', 'ada'), undefined);
  await fleet.pass(3);
  t.is(count(fleet, 2), 0);
  t.is(newestProblem(fleet), 'taken back: aborted by ada: wrong file');
});

// Proof of operating.md: an operator pauses it
test('a bad revision is taken back while it is paused, too', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=20%,hold=1h' });
  await fleet.pass(3);
  await fleet.plane.rollout.act('pause', 'lunch', 'ada');
  fleet.effects.set(2, limiting);
  t.true((await passUntil(fleet, () => count(fleet, 2) === 0, 20)) <= 6);
});

test('a control plane that is stopped while it takes a revision back tells its peers, which give it to nobody again', async (t) => {
  for (let offset = 0; offset < 5; offset++) {
    const fleet = await startWithSecond(
      t,
      {},
      { plan: 'canary=20%,hold=60s', planes: ['a', 'b'], timing: gitTiming },
    );
    await fleet.pass(20 + offset);
    const leader = [...fleet.planes.values()].find(({ keeper }) => keeper.leads);
    const name = leader?.name ?? '';
    const aborting = leader?.rollout.act('abort', 'bad', 'Ann');
    await fleet.stopPlane(name, name === 'a' ? 'b' : 'a');
    t.is(await aborting, undefined);
    await fleet.pass(2);
    t.deepEqual(fleet.having(2), [], `${offset}`);
  }
});

// Proof of operating.md: the control plane that leads is killed
test('a control plane that is killed and started again goes on where it was, with the same workers', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: '5%:30s,25%:60s,100%', workers: 100 });
  await fleet.pass(40);
  const before = fleet.having(2);
  t.is(before.length, 25);
  fleet.killPlane('a');
  await fleet.startPlane('a');
  t.is(state(fleet)?.step, 2, 'from its first moment on');
  for (const worker of fleet.workers) fleet.connect(worker, 'a');
  await fleet.pass(3);
  t.deepEqual(fleet.having(2), before);
  t.true(fleet.plane.keeper.leads, 'its own process of before is not awaited');
  t.regex(fleet.log.lines.join('\n'), /: goes on at step 2, a leads after a restart$/m);
  await fleet.pass(80);
  t.is(count(fleet, 2), 100);
});

test('a clock that jumps changes nothing', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=20%,hold=30s' });
  await fleet.pass(10);
  fleet.clock.setWall(5_000_000_000_000);
  await fleet.pass(10);
  t.is(count(fleet, 2), 4);
  fleet.clock.setWall(1);
  await fleet.pass(5);
  t.is(count(fleet, 2), 4);
  await fleet.pass(15);
  t.is(count(fleet, 2), 20);
});

test('a rollout whose beginning was written although the answer was lost shares its id with no later one', async (t) => {
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

// Proof of operating.md: the record cannot be read or written
test('while the record cannot be reached no step is taken, and what is bad leaves the workers all the same', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=20%,hold=10s' });
  await fleet.pass(5);
  fleet.text.mode = 'away';
  await fleet.pass(60);
  t.is(count(fleet, 2), 4);
  t.regex(state(fleet)?.text ?? '', /cannot be (read|written) \(no route to it\)/);
  fleet.effects.set(2, { overLimit: 1 });
  t.true((await passUntil(fleet, () => count(fleet, 2) === 0, 60)) <= 30);
  await fleet.pass(5);
  t.like(state(fleet), { phase: 'taking_back', workers: { having: 0, chosen: 0, others: 20 } });
  t.regex(
    state(fleet)?.text ?? '',
    /^over limit .*; the shared record cannot be written \(no route to it\)$/,
  );
  fleet.text.mode = 'fine';
  await fleet.pass(5);
  t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
});

// Proof of operating.md: a control plane starts with an empty state directory
test('a control plane with an empty state directory gives nobody what was taken back, held back or is on trial', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: 'canary=20%,hold=1h' });
  await fleet.pass(5);
  const having = fleet.having(2);
  fleet.killPlane('a');
  await fleet.startPlane('a', true);
  for (const worker of fleet.workers) fleet.connect(worker, 'a');
  await fleet.pass(20);
  t.deepEqual(fleet.having(2), having);
  await fleet.plane.rollout.act('abort', 'wrong', 'ada');
  await fleet.pass(3);
  fleet.killPlane('a');
  await fleet.startPlane('a', true);
  for (const worker of fleet.workers) fleet.connect(worker, 'a');
  const fresh = fleet.addWorker({ id: 'fresh', plane: 'a' });
  await fleet.pass(20);
  t.is(count(fleet, 2), 0);
  t.true(fresh.has?.resources.has('revision-1'));
  t.regex(newestProblem(fleet), /^taken back: wrong/);
});

test('a rollout that could not begin is told to somebody who acts on it', async (t) => {
  const fleet = await startSimulatedFleet(t);
  fleet.text.mode = 'away';
  fleet.store.publish(revisionOf(2));
  await fleet.pass(3);
  const { rollout } = fleet.plane;
  t.regex((await rollout.act('abort', 'wrong', 'ops')) ?? '', /^the shared record cannot be /);
  t.is(fleet.having(2).length, 0);
  t.false(linesOf(fleet).some((line) => line.endsWith('begins')));
});

test('the log says of a rollout that it begins, who gets it, how each step did, and that it is over', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: '10%:30s,50%:30s' });
  await fleet.pass(80);
  t.is(count(fleet, 2), 20);
  const said = linesOf(fleet).map((line) =>
    line.replace(/^notice Rollout of revision 0+: /, '').replaceAll(/\d{4,}/g, 'N'),
  );
  t.deepEqual(said, [
    'begins',
    'step 1 of 3, 2 of 20 workers',
    'step 1: within the bounds: errors 0.0 % beside 0.0 %; over limit 0.0 % beside 0.0 %; without a rule 0.0 % beside 0.0 % (N decisions with it, N without); step 2 of 3, 10 of 20 workers',
    'step 2: within the bounds: errors 0.0 % beside 0.0 %; over limit 0.0 % beside 0.0 %; without a rule 0.0 % beside 0.0 % (N decisions with it, N without); all steps are done, so everybody gets it',
  ]);
});

test('an invalid revision is on record also when it is mended while something else is being written', async (t) => {
  const fleet = await startSimulatedFleet(t);
  const wrong = { ...revisionOf(3), files: [{ path: 'a.yaml', text: 'domain: [' }] };
  // Its rollout is being put on record.
  fleet.store.publish(revisionOf(2));
  fleet.store.publish(wrong);
  fleet.store.publish(revisionOf(4));
  await fleet.pass(2);
  t.deepEqual(
    fleet.plane.rollout.memory().outcomes.map(({ revisions, kind }) => [revisions[0], kind]),
    [
      [wrong.id, 'invalid'],
      [revisionOf(1).id, 'in_force'],
    ],
  );
});

test('an invalid revision is on record before what mended it, also when neither could be written for a while', async (t) => {
  const fleet = await startSimulatedFleet(t);
  const wrong = { ...revisionOf(2), files: [{ path: 'a.yaml', text: 'domain: [' }] };
  fleet.text.mode = 'away';
  fleet.store.publish(wrong);
  await fleet.pass(5);
  fleet.store.publish(revisionOf(3, 'mended\n\nRollout: now'));
  await fleet.pass(5);
  fleet.text.mode = 'fine';
  await fleet.pass(5);
  t.deepEqual(
    fleet.plane.rollout.memory().outcomes.map(({ revisions, kind }) => [revisions[0], kind]),
    [
      [revisionOf(3).id, 'in_force'],
      [wrong.id, 'invalid'],
      [revisionOf(1).id, 'in_force'],
    ],
  );
});

test('the outcome of each revision is on record, with the figures and who decided', async (t) => {
  const fleet = await startWithSecond(t, {}, { plan: '10%:30s,50%:30s' });
  await fleet.pass(80);
  fleet.store.publish(revisionOf(3));
  await fleet.pass(5);
  await fleet.plane.rollout.act('abort', 'wrong file', 'ops');
  await fleet.pass(2);
  const { outcomes } = fleet.plane.rollout.memory();
  t.deepEqual(
    outcomes.map(({ revisions, kind, by }) => [revisions, kind, by]),
    [
      [[revisionOf(3).id], 'taken_back', 'ops'],
      [[revisionOf(2).id], 'in_force', ''],
      [[revisionOf(1).id], 'in_force', ''],
    ],
  );
  const [taken, second, first] = outcomes;
  t.is(taken?.reason, 'wrong file');
  t.regex(second?.reason ?? '', /over limit 0\.0 % beside 0\.0 %.*\(\d+ decisions with it, \d+ /);
  const times = [first, second, taken].map((each) => each?.atMs ?? 0);
  t.deepEqual(
    times,
    times.toSorted((a, b) => a - b),
  );
});

test('of single workers at each of several control planes a share can be made', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'], workers: 2 });
  await fleet.pass(40);
  for (const { rollout } of fleet.planes.values()) t.is(rollout.warning(), undefined);
  t.deepEqual(linesOf(fleet), []);
});

test('while a revision is on trial the store is looked at every five seconds, and not by it else', async (t) => {
  const fleet = await startSimulatedFleet(t, { plan: 'canary=10%,hold=1h' });
  await fleet.pass(20);
  t.deepEqual(fleet.triggers, []);
  fleet.store.publish(revisionOf(2));
  await fleet.pass(20);
  t.is(fleet.triggers.length, 5, 'at once, and four times');
});

test('an entry that a control plane makes in the record without a rollout is told to its peers five times', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  for (const number of [2, 3]) {
    fleet.questions.length = 0;
    fleet.store.publish(revisionOf(number, 'in a hurry\n\nRollout: now'));
    await fleet.pass(20);
    t.is(fleet.questions.length, 5);
    t.is(new Set(fleet.questions).size, 1, 'the one that wrote it');
  }
});

test('a follower waits five seconds for its leader after the last change that it wrote', async (t) => {
  const fleet = await startWithSecond(
    t,
    {},
    { planes: ['a', 'b'], plan: 'canary=50%,hold=1h', workers: 40 },
  );
  await fleet.pass(10);
  const leader = fleet.readRecord()?.leader.name ?? '';
  for (const plane of fleet.planes.values()) plane.isCutOff = true;
  await fleet.pass(4);
  await fleet.planes.get(leader)?.rollout.act('pause', 'lunch', 'ada');
  await fleet.pass(1);
  fleet.standStill(leader);
  fleet.effects.set(2, { overLimit: 1 });
  await fleet.pass(4);
  t.is(fleet.readRecord()?.rollout?.outcome, 'paused');
  await fleet.pass(3);
  t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
  t.not(fleet.readRecord()?.leader.name, leader);
});

test('while the record is being written nothing else is put on it', async (t) => {
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

test('a leader that asks lives, also when it changes nothing for long', async (t) => {
  const fleet = await startWithSecond(
    t,
    {},
    { planes: ['a', 'b'], plan: 'canary=50%,hold=1h', workers: 40 },
  );
  await fleet.pass(10);
  const leader = fleet.readRecord()?.leader.name ?? '';
  const follower = fleet.planes.get(leader === 'a' ? 'b' : 'a');
  fleet.standStill(leader);
  fleet.effects.set(2, { overLimit: 1 });
  for (let second = 0; second < 6; second++) {
    follower?.rollout.tellPeer(follower.keeper.contentId);
    await fleet.pass(1);
  }
  t.is(fleet.readRecord()?.rollout?.outcome, 'running');
  await fleet.pass(6);
  t.is(fleet.readRecord()?.rollout?.outcome, 'taken_back');
});

test('a control plane that is stopped while nothing is rolled out has nothing to tell', async (t) => {
  const fleet = await startSimulatedFleet(t, { planes: ['a', 'b'] });
  await fleet.pass(10);
  fleet.questions.length = 0;
  await fleet.stopPlane('a', 'b');
  t.deepEqual(fleet.questions, []);
});

test('a control plane that cannot hand over is stopped after three seconds', async (t) => {
  const fleet = await startWithSecond(t, {}, {});
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
