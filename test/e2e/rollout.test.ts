// A revision on its way to the workers in steps: the control plane and its commands as people run them, with
// workers that are streams of the test's own.
import test from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { connectWorker } from '../support/discovery-worker.ts';
import { eventually } from '../support/eventually.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';

test('of a revision that workers refuse, one of ten ever sees anything, and people are told why', async (t) => {
  const rules = createRulesFolder(t);
  rules.write('a.yaml', ruleText('first', 1));
  const flags = ['--config-dir', rules.path, '--rollout', 'canary=10%,hold=1h'];
  const controlPlane = await createControlPlaneProcess(t, { flags });
  await controlPlane.start();
  const port = Number(controlPlane.xdsAddress.split(':')[1]);
  const workers = Array.from({ length: 10 }, (_, index) => connectWorker(t, port, `w-${index}`));
  await eventually('all have the first', () => workers.every(({ sees }) => sees('first')));

  rules.write('a.yaml', ruleText('refused', 1));
  const waited = await controlPlane.run('status', '--wait', '--timeout', '60s');
  t.is(waited.exitCode, 4, waited.stderr);
  t.regex(
    waited.stdout,
    /was taken back: worker 'w-\d' refuses it: no such unit; 1 worker had it: revision [0-9a-f]{12} stays in force/,
  );
  await eventually('it has the first again', () => workers.every(({ sees }) => sees('first')));
  t.is(workers.filter(({ seen }) => seen.some((each) => each.includes('refused'))).length, 1);
  t.regex(controlPlane.output(), /is not served.*taken back: worker 'w-\d' refuses it/);

  rules.write('a.yaml', ruleText('second', 1));
  await eventually('one has the second', async () => {
    const { stdout } = await controlPlane.run('rollout', 'status');
    return /: step 1 of 2, (holding|silent), 1 of 1 worker has it, 9 others do not/.test(stdout);
  });
  t.is(workers.filter(({ sees }) => sees('second')).length, 1);
  const { newest, inForce } = (await controlPlane.fetch('/status')).body;
  const aborted = await controlPlane.run('rollout', 'abort', '--reason', 'wrong file');
  t.is(aborted.exitCode, 0, aborted.stderr);
  t.regex(
    aborted.stdout,
    /^the rollout of revision [0-9a-f]{12} is aborted: all workers go back to what is in force\n$/,
  );
  const ended = await controlPlane.run('rollout', 'status');
  t.is(ended.exitCode, 1);
  t.regex(
    ended.stdout,
    /^no rollout is under way; the last one on record: revision [0-9a-f]{12} was taken back by local at \S+: aborted by local: wrong file\n$/,
  );
  const again = await controlPlane.run('rollout', 'abort', '--reason', 'wrong file');
  t.is(again.exitCode, 5);
  t.regex(again.stderr, /no rollout is under way/);
  const auditOf = (what: string) =>
    controlPlane.output().match(new RegExp(`audit: ${what}: done".* after=(\\S+) before=(\\S+)`));
  t.deepEqual(auditOf('abort the rollout: wrong file')?.slice(1), [inForce.id, newest.id]);

  rules.write('a.yaml', ruleText('third', 1));
  await eventually('one has the third', () => workers.some(({ sees }) => sees('third')));
  const promoted = await controlPlane.run('rollout', 'promote', '--reason', 'seen by eye');
  t.is(promoted.exitCode, 0, promoted.stderr);
  t.regex(
    promoted.stdout,
    /^the rollout of revision [0-9a-f]{12} is done: all workers get the revision now\n$/,
  );
  const status = await controlPlane.run('status', '--wait', '--timeout', '60s');
  t.is(status.exitCode, 0, status.stdout);
  const third = (await controlPlane.fetch('/status')).body.inForce.id;
  t.deepEqual(auditOf('promote the rollout: seen by eye')?.slice(1), [third, inForce.id]);
  t.true(workers.every(({ sees }) => sees('third')));
  t.is(await controlPlane.end('SIGTERM'), 0);
});

test('an emergency goes to everybody at once, and says why', async (t) => {
  const rules = createRulesFolder(t);
  const files = createRulesFolder(t);
  rules.write('a.yaml', ruleText('first', 1));
  files.write('a.yaml', ruleText('second', 1));
  const flags = ['--config-dir', rules.path, '--rollout', 'canary=10%,hold=1h'];
  const controlPlane = await createControlPlaneProcess(t, { flags });
  await controlPlane.start();
  const port = Number(controlPlane.xdsAddress.split(':')[1]);
  const workers = ['a', 'b', 'c'].map((id) => connectWorker(t, port, id));
  await eventually('all have the first', () => workers.every(({ sees }) => sees('first')));
  const silent = await controlPlane.run('push', files.path, '--now');
  t.is(silent.exitCode, 2);
  t.regex(silent.stderr, /rollout now: the message has to say why/);
  const both = await controlPlane.run('push', files.path, '--now', '--supersede');
  t.is(both.exitCode, 2);
  const pushed = await controlPlane.run(
    'push',
    files.path,
    '--now',
    '-m',
    'the shop is down',
    '--wait',
  );
  t.is(pushed.exitCode, 0, pushed.stdout + pushed.stderr);
  t.true(workers.every(({ sees }) => sees('second')));
});
