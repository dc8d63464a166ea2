// Two control planes on the same rules, each with workers of its own: one of them decides on a rollout, and when
// it is killed the other one does.
import test from 'ava';
import {
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../support/control-plane-process.ts';
import { connectWorker, type DiscoveryWorker } from '../support/discovery-worker.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';

/** Its lease is 30 s, and its last sign of life up to 10 s old. */
const shorterThanOfGitMs = 18_000;
const portOf = ({ xdsAddress }: ControlPlaneProcess) => Number(xdsAddress.split(':')[1]);
const idsOf = (workers: readonly DiscoveryWorker[], text: string) =>
  workers.filter(({ sees }) => sees(text)).map(({ id }) => id);
const rolloutOf = async (plane: ControlPlaneProcess) =>
  (await plane.fetch('/rollouts')).body.rollout;

test('a control plane that is killed in a rollout is followed by its peer, which says so and goes on', async (t) => {
  const rules = createRulesFolder(t);
  rules.write('a.yaml', ruleText('first', 1));
  const ports = [await freePort(), await freePort()] as const;
  const create = (own: 0 | 1) =>
    createControlPlaneProcess(t, {
      flags: [
        ...['--config-dir', rules.path, '--rollout', 'canary=10%,hold=1h'],
        ...['--peers', `http://127.0.0.1:${ports[1 - own]}`],
      ],
      adminPort: ports[own],
    });
  const planes = [await create(0), await create(1)] as const;
  await Promise.all(planes.map((plane) => plane.start()));
  const connect = (plane: ControlPlaneProcess, ids: readonly string[]) =>
    ids.map((id) => connectWorker(t, portOf(plane), id));
  const idsAt = [
    ['w-0', 'w-1', 'w-2'],
    ['w-3', 'w-4', 'w-5'],
  ] as const;
  const workers = planes.map((plane, index) => connect(plane, idsAt[index] ?? []));
  const all = () => workers.flat();
  await eventually('all have the first', () => all().every(({ sees }) => sees('first')));

  rules.write('a.yaml', ruleText('second', 1));
  await eventually('one of six is watched', async () => {
    const rollouts = await Promise.all(planes.map(rolloutOf));
    const leading = rollouts.find((each) => each?.leader?.isThis);
    return idsOf(all(), 'second').length === 1 && /^is watched/.test(leading?.text ?? '');
  });
  const having = idsOf(all(), 'second');
  const rollouts = await Promise.all(planes.map(rolloutOf));
  t.is(rollouts.filter(({ leader }) => leader.isThis).length, 1);
  const leaderAt = rollouts[0].leader.isThis ? 0 : 1;
  const [leader, follower] = leaderAt === 0 ? planes : [planes[1], planes[0]];
  const { name } = rollouts[0].leader;
  t.is(rollouts[1].leader.name, name);
  t.like(rollouts[leaderAt].workers, { having: 1, chosen: 1, others: 5 });
  t.regex(
    (await follower.run('rollout', 'status')).stdout,
    /: step 1 of 2, holding, 1 of 1 worker has it, 5 others do not; is watched for another /,
    'the one that only follows says what the leader waits for',
  );

  t.is(await leader.end('SIGKILL'), 'SIGKILL');
  workers[leaderAt] = connect(follower, idsAt[leaderAt]);
  await eventually(
    'the other one leads, after the lease of a directory',
    async () => (await rolloutOf(follower)).leader.isThis,
    shorterThanOfGitMs,
  );
  const taken = await rolloutOf(follower);
  t.is(taken.leader.after, name);
  await eventually('it says what it waits for', async () => {
    const { stdout } = await follower.run('rollout', 'status');
    return /waits for peer http:\S+, which gives no answer \(.*\)/.test(stdout);
  });
  t.regex(
    follower.output(),
    /audit: lead the rollout of revision [0-9a-f]{12} after \S+: it goes on at step 1: done/,
  );
  await eventually('all are served', () => all().every(({ seen }) => seen.length > 0));
  t.deepEqual(idsOf(all(), 'second'), having);
  const unknown = await follower.run('status');
  t.not(unknown.exitCode, 0);

  await leader.start();
  await eventually('it is watched again', async () =>
    /^is watched/.test((await rolloutOf(follower))?.text ?? ''),
  );
  t.deepEqual(idsOf(all(), 'second'), having);
  const promoted = await leader.run('rollout', 'promote', '--reason', 'seen by eye');
  t.is(promoted.exitCode, 0, promoted.stderr);
  await eventually('all have the second', () => all().every(({ sees }) => sees('second')));
  const status = await follower.run('status', '--wait', '--timeout', '60s');
  t.is(status.exitCode, 0, status.stdout);
  t.regex(status.stdout, /is in force on all 6 connected workers/);
});
