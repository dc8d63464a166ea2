// Tests a revision that no share of the workers can receive first: what is reported about it, and who can approve it.
import test, { type ExecutionContext } from 'ava';
import {
  type ControlPlaneInProcess,
  createControlPlaneInProcess,
} from '../../support/control-plane-in-process.ts';
import { connectWorker } from '../../support/discovery-worker.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

const portOf = ({ xdsAddress }: ControlPlaneInProcess) => Number(xdsAddress.split(':')[1]);

/** Control planes on one directory that are peers; two workers with the same node id are connected to the first. */
async function startWithCopies(t: ExecutionContext, count: 1 | 2) {
  const rules = createRulesFolder(t, { 'a.yaml': ruleText('first', 1) });
  const ports = [await freePort(), await freePort()] as const;
  const plan = ['--config-dir', rules.path, '--rollout', 'canary=10%,hold=1h'];
  const record = count === 1 ? [] : ['--record', `redis://${(await startRedisServer(t)).url}`];
  const create = (own: 0 | 1) => {
    const peers = count === 1 ? [] : ['--peers', `http://127.0.0.1:${ports[1 - own]}`];
    const flags = [...plan, ...record, ...peers];
    return createControlPlaneInProcess(t, { flags, adminPort: ports[own] });
  };
  const plane = await create(0);
  const other = count === 2 ? await create(1) : plane;
  for (const each of new Set([plane, other])) await each.start();
  const workers = ['same', 'same'].map((id) => connectWorker(t, portOf(plane), id, null));
  const has = (text: string) => workers.every(({ sees }) => sees(text));
  await eventually('both have the first', () => has('first'));
  rules.write('a.yaml', ruleText('second', 1));
  await eventually('a control plane reports that there is no share', async () => {
    const states = await Promise.all([plane, other].map((each) => each.fetch('/rollouts')));
    return states.some(({ body }) => body.rollout?.phase === 'indivisible');
  });
  return { plane, other, has };
}

async function findFollowers(planes: readonly ControlPlaneInProcess[]) {
  const states = await Promise.all(planes.map((plane) => plane.fetch('/rollouts')));
  const followers = planes.filter((_, index) => !states[index]?.body.rollout.leader.isThis);
  return followers as [ControlPlaneInProcess];
}

test('a revision that no share of the workers can receive first waits, is reported, and is approved', async (t) => {
  const { plane, has } = await startWithCopies(t, 1);
  const expected =
    /cannot be rolled out in steps, as no share of the workers can be made: none of the 2 workers, such as '.*', names its instance; it waits until an operator approves it/;
  const status = await plane.run('status', '--wait', '--timeout', '60s');
  t.is(status.exitCode, 4, status.stdout);
  t.regex(status.stdout, expected);
  t.like((await plane.fetch('/status')).body, { verdict: 'held_back' });
  const rollout = await plane.run('rollout', 'status');
  t.regex(rollout.stdout, /^revision [0-9a-f]{12}: step 0 of 2, indivisible, /);
  t.regex(rollout.stdout, expected);
  const metrics = await (await fetch(`${plane.adminUrl}/metrics`)).text();
  t.regex(metrics, /^ratelane_control_plane_rollout_paused 1$/m);
  t.regex(plane.output(), expected);
  t.false(has('second'));
  const { id } = (await plane.fetch('/status')).body.newest;
  const waiting = ['--wait', '--timeout', '60s'];
  const approved = await plane.run(
    ...['approve', id.slice(0, 12), '--reason', 'they are copies', ...waiting],
  );
  t.is(approved.exitCode, 0, approved.stdout);
  t.regex(
    approved.stdout,
    / is approved\nrevision \w{12} is in force on all 2 connected workers\n/,
  );
  t.true(has('second'));
  t.regex(
    approved.stderr,
    /^warning: the next revision will have to be approved, since no share of the workers can be made: none of the 2/m,
  );
});

test('an approval on a control plane that does not lead is effective', async (t) => {
  const { plane, other, has } = await startWithCopies(t, 2);
  const { id } = (await plane.fetch('/status')).body.newest;
  const [follower] = await findFollowers([plane, other]);
  const waiting = ['--wait', '--timeout', '60s'];
  const approved = await follower.run(
    ...['approve', id.slice(0, 12), '--reason', 'they are copies', ...waiting],
  );
  t.is(approved.exitCode, 0, approved.stdout);
  t.true(approved.stdout.startsWith(`revision ${id} is approved\n`), approved.stdout);
  t.true(has('second'));
  t.regex(follower.output(), /audit: approve revision [0-9a-f]{12}: they are copies: done/);
});
