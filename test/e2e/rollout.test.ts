// A rollout in steps: the control plane and its commands as users run them, with workers simulated by streams of the
// test, and once with real workers and their traffic.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { connectWorker } from '../support/discovery-worker.ts';
import { eventually } from '../support/eventually.ts';
import { createGitRepository } from '../support/git-repository.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';

const plan = ['--rollout', 'canary=10%,hold=1h'];

async function startPlane(t: ExecutionContext, ...source: readonly string[]) {
  const controlPlane = await createControlPlaneProcess(t, { flags: [...source, ...plan] });
  await controlPlane.start();
  const port = Number(controlPlane.xdsAddress.split(':')[1]);
  return {
    controlPlane,
    /** Resolves when all have rules with this text. */
    async connectAll(count: number, text: string) {
      const workers = Array.from({ length: count }, (_, index) =>
        connectWorker(t, port, `w-${index}`),
      );
      await eventually(`all have the ${text}`, () => workers.every(({ sees }) => sees(text)));
      return { workers, having: (what: string) => workers.filter(({ sees }) => sees(what)).length };
    },
  };
}

test('a revision that workers refuse reaches only one of ten, and the reason is reported', async (t) => {
  const rules = createRulesFolder(t, { 'a.yaml': ruleText('first', 1) });
  const { controlPlane, connectAll } = await startPlane(t, '--config-dir', rules.path);
  const { workers, having } = await connectAll(10, 'first');

  rules.write('a.yaml', ruleText('refused', 1));
  const waited = await controlPlane.run('status', '--wait', '--timeout', '60s');
  t.is(waited.exitCode, 4, waited.stderr);
  t.regex(
    waited.stdout,
    /was taken back: worker 'w-\d' refuses it: no such unit; 1 worker had it: revision [0-9a-f]{12} stays in force/,
  );
  await eventually('it has the first again', () => having('first') === 10);
  t.is(workers.filter(({ seen }) => seen.some((each) => each.includes('refused'))).length, 1);
  t.regex(controlPlane.output(), /is not served.*taken back: worker 'w-\d' refuses it/);

  rules.write('a.yaml', ruleText('second', 1));
  await eventually('one has the second', async () => {
    const { stdout } = await controlPlane.run('rollout', 'status');
    return /: step 1 of 2, (holding|silent), 1 of 1 worker has it, 9 others do not/.test(stdout);
  });
  t.is(having('second'), 1);
  const { newest, inForce } = (await controlPlane.fetch('/status')).body;
  const other = await controlPlane.run(
    ...['rollout', 'promote', '--reason', 'of yesterday', '--revision', 'f'.repeat(40)],
  );
  t.is(other.exitCode, 5);
  t.regex(
    other.stderr,
    /the rollout of revision f{12} is not under way, that of revision [0-9a-f]{12} is/,
  );
  const aborted = await controlPlane.run('rollout', 'abort', '--reason', 'wrong file');
  t.is(aborted.exitCode, 0, aborted.stderr);
  t.regex(
    aborted.stdout,
    /^the rollout of revision [0-9a-f]{12} is aborted: all workers return to the revision in force\n$/,
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
  await eventually('one has the third', () => having('third') > 0);
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
  t.is(having('third'), 10);

  const files = createRulesFolder(t, { 'a.yaml': ruleText('fourth', 1) });
  const now = (...more: string[]) => controlPlane.run('push', files.path, '--now', ...more);
  const silent = await now();
  t.is(silent.exitCode, 2);
  t.regex(silent.stderr, /rollout now: the message has to give the reason/);
  t.is((await now('--supersede')).exitCode, 2);
  const pushed = await now('--message', 'the shop is down', '--wait');
  t.is(pushed.exitCode, 0, pushed.stdout + pushed.stderr);
  t.is(having('fourth'), 10, 'an emergency reaches all workers at once');
  t.is(await controlPlane.end('SIGTERM'), 0);
});

/** Pushes of the rules and of the record wait until `go` exists, for at most 60 s. */
const slowHook = `#!/bin/sh
for second in $(seq 600); do
  [ -e go ] && exit 0
  sleep 0.1
done
`;
/** The record is still written. */
const refusingHook = `#!/bin/sh
while read -r before after ref; do
  case "$ref" in refs/heads/*) echo 'the branch is protected'; exit 1;; esac
done
`;

for (const [what, hook, undo, exitCode] of [
  ['takes long for pushes', slowHook, 'push', 0],
  ['refuses pushes', refusingHook, 'rollback', 2],
] as const) {
  test(`a Git host that ${what} keeps no revision with the workers on trial that a ${undo} undoes`, async (t) => {
    const repository = createGitRepository(t, { 'a.yaml': ruleText('good', 1) });
    const { controlPlane, connectAll } = await startPlane(t, '--git', repository.url);
    const { having } = await connectAll(3, 'good');
    repository.push({ 'a.yaml': ruleText('bad', 1) });
    await controlPlane.fetch('/status?look=true');
    await eventually('one has it', () => having('bad') === 1);
    const rules = createRulesFolder(t, { 'a.yaml': ruleText('good', 1) });
    writeFileSync(join(repository.path, 'hooks', 'pre-receive'), hook, { mode: 0o755 });
    const base = (await controlPlane.fetch('/status')).body.inForce.id;
    let isAnswered = false;
    const answer = controlPlane.run(undo, { push: rules.path, rollback: base }[undo]);
    void answer.finally(() => {
      isAnswered = true;
    });
    await eventually('all have the good one', () => having('good') === 3);
    if (hook === slowHook) t.false(isAnswered, 'the push is still under way');
    writeFileSync(join(repository.path, 'go'), '');
    const answered = await answer;
    t.is(answered.exitCode, exitCode, answered.stderr);
    if (hook === slowHook) return;
    t.regex(answered.stderr, /the branch is protected/);
    await eventually('status shows the failure', async () => {
      const { text } = (await controlPlane.fetch('/status')).body;
      return /taken back: undone by local: Roll back to [0-9a-f]{12}: revision/.test(text);
    });
  });
}
