// Tests what the chart of a real control plane shows of the last hour: revisions, rollouts and resets as they happen,
// and all of it after a restart.
import test from 'ava';
import { sampleRules, startConsole, startFed } from '../../console/console-fixture.ts';
import { eventually } from '../../support/eventually.ts';
import { pluck } from '../../support/pluck.ts';

interface Slot {
  readonly at: string;
  readonly decisions: number;
}

interface Mark {
  readonly kind: string;
  readonly revision: string | null;
  readonly text: string;
}

test('revisions, rollouts and resets are marked, and a restart keeps them and the traffic', async (t) => {
  const served = await startConsole(
    t,
    { 'd.yaml': sampleRules },
    '--rollout',
    'canary=50%,hold=1h',
  );
  const { plane, rules } = served;
  const readHour = async () => (await plane.fetch('/traffic?span=1h')).body;
  const readMarks = async (): Promise<Mark[]> => (await readHour()).marks;
  const waitFor = (kind: string) =>
    eventually(`${kind} is marked`, async () => (await readMarks()).at(-1)?.kind === kind);
  const steer = async (action: string) => {
    await eventually('one has it', async () => {
      return (await plane.fetch('/status')).body.rollout?.workers.having === 1;
    });
    const { exitCode, stderr } = await plane.run('rollout', action, '--reason', 'as it is');
    t.is(exitCode, 0, stderr);
  };
  const worker = await startFed(t, served, 'w-1');
  await startFed(t, served, 'w-2');
  rules.replace('d.yaml', sampleRules.replace('per_unit: 3', 'per_unit: 4'));
  await waitFor('rollout');
  const { newest } = (await plane.fetch('/status')).body;
  await steer('abort');
  await waitFor('taken_back');
  rules.replace('d.yaml', sampleRules.replace('per_unit: 3', 'per_unit: 5'));
  await waitFor('rollout');
  await steer('promote');
  await waitFor('in_force');
  const body = JSON.stringify({
    domain: 'd',
    descriptors: [[{ key: 'customer', value: 'ada' }]],
    reason: 'a good customer',
  });
  const headers = { 'content-type': 'application/json' };
  t.is((await plane.fetch('/resets', { method: 'POST', headers, body })).status, 200);
  const marks = await readMarks();
  t.is(marks.at(-1)?.text, 'local: reset counters of (customer=ada) of domain d: a good customer');
  // Processes that connect, and their effect on answers, have their own marks: an outage is dated back to its
  // beginning.
  const toUsers = (of: readonly Mark[]) =>
    of.filter(({ kind }) => !/^(?:control_plane|workers|outage)$/.test(kind));
  const ofUsers = toUsers(marks);
  t.deepEqual(pluck(ofUsers, 'kind'), ['rollout', 'taken_back', 'rollout', 'in_force', 'reset']);
  t.is(ofUsers[1]?.revision, newest.id);
  let slots: readonly Slot[] = [];
  // The slot in which the first worker connected stays unknown: only its end would be known.
  await eventually('decisions are known', async () => {
    await worker.decide('customer=ada');
    slots = (await plane.fetch('/traffic')).body.slots;
    return slots.some(({ decisions }) => decisions > 0);
  });

  t.is(await plane.end('SIGTERM'), 0);
  rules.replace(
    'd.yaml',
    sampleRules.replace('per_unit: 3', 'per_unit: 5').replace('plan', 'plans'),
  );
  await plane.start();
  const after = (await plane.fetch('/traffic')).body;
  // A report may have arrived before the end.
  const restored: readonly Slot[] = after.slots.slice(0, slots.length);
  t.deepEqual(
    pluck(restored, 'at'),
    slots.map(({ at }) => at),
  );
  t.true(restored.every(({ decisions }, index) => decisions >= (slots[index]?.decisions ?? 0)));
  t.deepEqual(toUsers(after.marks).slice(0, ofUsers.length), ofUsers);
  await waitFor('rollout');
});
