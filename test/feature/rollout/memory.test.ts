// Tests what control planes record beside the rules, or in an engine: revisions that were taken back, held back and
// approved, with peers or without, whatever happens to a state directory.
import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  type ControlPlaneInProcess,
  createControlPlaneInProcess,
} from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { createGitRepository } from '../../support/git-repository.ts';
import { startRedisServer } from '../../support/redis-server.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';
import { connectStreamWorker, type StreamWorker } from '../../support/stream-worker.ts';

const plan = ['--rollout', 'canary=10%,hold=1h'];

/** The location of the rules, and how they change. */
interface RuleStore {
  readonly flags: readonly string[];
  put(files: Readonly<Record<string, string | undefined>>): void;
  /** The record as stored there; '' for none. */
  readRecord(): string | Promise<string>;
}

async function openEngine(t: ExecutionContext) {
  const folder = createRulesFolder(t);
  const redis = await startRedisServer(t);
  const key = 'ratelane/record/default';
  return {
    flags: ['--config-dir', folder.path, '--record', `redis://${redis.url}`],
    put(files: Readonly<Record<string, string | undefined>>) {
      for (const [name, text] of Object.entries(files)) {
        if (text === undefined) rmSync(join(folder.path, name));
        else folder.write(name, text);
      }
    },
    readRecord: async () => String(await redis.command('GET', key)),
    /** Writes or deletes it from outside. */
    record: (text: string | undefined) =>
      text === undefined
        ? redis.command('DEL', key)
        : redis.command('SET', key, `${randomUUID()}\n${text}`),
  };
}

const stores: Readonly<Record<string, (t: ExecutionContext) => RuleStore | Promise<RuleStore>>> = {
  'in Git': (t) => {
    const repository = createGitRepository(t);
    return {
      flags: ['--git', repository.url, '--git-poll', '200ms'],
      put: (files) => void repository.push(files),
      readRecord() {
        const ref = repository.gitAtRemote('for-each-ref', '--format=%(refname)', 'refs/ratelane');
        return ref.trim() === '' ? '' : repository.gitAtRemote('show', ref.trim());
      },
    };
  },
  'in an engine': openEngine,
};

function connectThree(t: ExecutionContext, plane: ControlPlaneInProcess): StreamWorker[] {
  return ['a', 'b', 'c'].map((id) => connectStreamWorker(t, { address: plane.xdsAddress, id }));
}

const having = (workers: readonly StreamWorker[], text: string) =>
  workers.filter((worker) => worker.has(text)).length;
const everNotified = (workers: readonly StreamWorker[], text: string) =>
  workers.filter(({ notified }) => notified.some((each) => each.includes(text))).length;
const verdictOf = async (plane: ControlPlaneInProcess) =>
  (await plane.fetch('/status')).body.verdict;
const reasonOf = async (plane: ControlPlaneInProcess): Promise<string> =>
  (await plane.fetch('/status')).body.text;

for (const [where, open] of Object.entries(stores)) {
  test(`${where}: a revision that was taken back is given to no worker by a control plane with an empty state directory`, async (t) => {
    const rules = await open(t);
    rules.put({ 'a.yaml': ruleText('first', 1) });
    const flags = [...rules.flags, ...plan];
    const first = await createControlPlaneInProcess(t, { flags });
    await first.start();
    const workers = connectThree(t, first);
    await eventually('all have the first', () => having(workers, 'first') === 3);
    rules.put({ 'a.yaml': ruleText('second', 1) });
    await eventually('one has the second', () => having(workers, 'second') === 1);
    const aborted = await first.run('rollout', 'abort', '--reason', 'wrong file');
    t.is(aborted.exitCode, 0, aborted.stderr);
    await eventually('no worker has it', () => having(workers, 'second') === 0);
    await first.stop();

    const replaced = await createControlPlaneInProcess(t, { flags });
    await replaced.start();
    // Its ports open before it has examined the store's revisions.
    const fresh = connectThree(t, replaced);
    await eventually('it is known', async () => (await verdictOf(replaced)) === 'taken_back');
    t.regex(await reasonOf(replaced), /taken back: aborted by local: wrong file/);
    // A directory has no earlier revisions.
    const known = where === 'in Git' ? 3 : 0;
    await eventually('all have what was in force before', () => having(fresh, 'first') === known);
    rules.put({ 'a.yaml': ruleText('third', 1) });
    await eventually('one has the third', () => having(fresh, 'third') === 1, 60_000);
    t.is(everNotified(fresh, 'second'), 0);
  });

  test(`${where}: a revision that removes everything is held back by each control plane, and one approval counts for all`, async (t) => {
    const rules = await open(t);
    rules.put({ 'a.yaml': ruleText('first', 1) });
    const first = await createControlPlaneInProcess(t, { flags: rules.flags });
    await first.start();
    const workers = connectThree(t, first);
    await eventually('all have the first', () => having(workers, 'first') === 3);
    rules.put({ 'a.yaml': undefined });
    await eventually('it is held back', async () => (await verdictOf(first)) === 'held_back');
    // Without a record, a control plane does not know what was in force before.
    await eventually('that is on record', async () =>
      (await rules.readRecord()).includes('no domain would be left'),
    );
    const second = await createControlPlaneInProcess(t, { flags: rules.flags });
    // With a directory it has no revision to serve, and is not ready; workers can still connect.
    await second.start();
    await eventually('its port is open', () => second.output().includes('Workers are served'));
    t.is((await second.fetch('/healthcheck')).status, where === 'in an engine' ? 503 : 200);
    const others = connectThree(t, second);
    // Its ports open before it has examined the store's revisions.
    await eventually('it is held back', async () => (await verdictOf(second)) === 'held_back');
    t.regex(await reasonOf(second), /held back: no domain would be left/);
    t.is(others.filter(({ notified }) => notified.includes('')).length, 0);
    const { body } = await second.fetch('/status');
    const approved = await second.run('approve', body.newest.id, '--reason', 'the shop is closed');
    t.is(approved.exitCode, 0, approved.stderr);
    await eventually('no worker has rules', () =>
      [...workers, ...others].every(({ notified }) => notified.at(-1) === ''),
    );
    for (const plane of [first, second])
      await eventually('it is in force', async () => (await verdictOf(plane)) === 'in_force');
    await first.stop();
    await first.start();
    const again = connectThree(t, first);
    await eventually('they get it', () => again.every(({ notified }) => notified.at(-1) === ''));
  });
}

test('while a Git host rejects pushes no worker gets a new revision, and the rollout begins when it accepts them', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': ruleText('first', 1) });
  const ports = [await freePort(), await freePort()] as const;
  const planes = await Promise.all(
    ([0, 1] as const).map((own) =>
      createControlPlaneInProcess(t, {
        flags: [
          ...['--git', repository.url, '--git-poll', '200ms', ...plan],
          ...['--peers', `http://127.0.0.1:${ports[1 - own]}`],
        ],
        adminPort: ports[own],
      }),
    ),
  );
  for (const plane of planes) await plane.start();
  const workers = planes.map((plane) => connectThree(t, plane));
  await eventually('all have the first', () => having(workers.flat(), 'first') === 6);
  const hook = join(repository.path, 'hooks', 'pre-receive');
  const script = '#!/bin/sh\ngrep -q refs/ratelane/ || exit 0\necho "may only read" >&2\nexit 1\n';
  writeFileSync(hook, script, { mode: 0o755 });
  repository.push({ 'a.yaml': ruleText('second', 1) });
  await eventually(
    'the missing record is logged',
    async () => {
      const { body } = await (planes[0] as ControlPlaneInProcess).fetch('/status');
      return /rejects writes .*\(.*may only read/.test(body.memory.problem);
    },
    40_000,
  );
  t.is(everNotified(workers.flat(), 'second'), 0);
  rmSync(hook);
  await eventually('one has it', () => having(workers.flat(), 'second') === 1, 40_000);
  await eventually(
    'both share again',
    async () => {
      const states = await Promise.all(planes.map((plane) => plane.fetch('/status')));
      return states.every((each) => each.body.memory.problem === null);
    },
    40_000,
  );
  const [one, other] = planes as [ControlPlaneInProcess, ControlPlaneInProcess];
  const aborted = await one.run('rollout', 'abort', '--reason', 'wrong file');
  t.is(aborted.exitCode, 0, aborted.stderr);
  await eventually('no worker has it', () => having(workers.flat(), 'second') === 0, 20_000);
  await eventually('both know it', async () => (await verdictOf(other)) === 'taken_back', 20_000);
});

test('a commit that a force push has dropped is removed from its workers, and the rollout of its replacement begins', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': ruleText('first', 1) });
  const plane = await createControlPlaneInProcess(t, {
    flags: ['--git', repository.url, '--git-poll', '200ms', ...plan],
  });
  await plane.start();
  const workers = connectThree(t, plane);
  await eventually('all have the first', () => having(workers, 'first') === 3);
  repository.push({ 'a.yaml': ruleText('second', 1) });
  await eventually('one has the second', () => having(workers, 'second') === 1, 20_000);
  repository.rewrite({ 'a.yaml': ruleText('third', 1) });
  await eventually('one has the third', () => having(workers, 'third') === 1, 40_000);
  t.deepEqual([having(workers, 'second'), everNotified(workers, 'second')], [0, 1]);
});

test('a read-only state directory is named, no step is taken, and a push for all at once arrives', async (t) => {
  const folder = createRulesFolder(t, { 'rules/a.yaml': ruleText('first', 1) });
  folder.write('state', 'in its way');
  const plane = await createControlPlaneInProcess(t, {
    flags: ['--config-dir', join(folder.path, 'rules'), ...plan],
    stateDirectory: join(folder.path, 'state'),
  });
  await plane.start();
  const workers = connectThree(t, plane);
  await eventually('all have the first', () => having(workers, 'first') === 3);
  folder.write('rules/a.yaml', ruleText('second', 1));
  const problemOf = async () => (await plane.fetch('/status')).body.memory.problem ?? '';
  await eventually('it is named', async () =>
    /rollout\.json rejects writes/.test(await problemOf()),
  );
  t.is(everNotified(workers, 'second'), 0);
  const files = [{ path: 'a.yaml', text: ruleText('third', 1) }];
  const { status } = await plane.fetch('/revisions', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ files, message: 'in a hurry', rollout: 'now' }),
  });
  t.is(status, 201);
  await eventually('all have the third', () => having(workers, 'third') === 3);
});

// Proof of operating.md: the record is of a newer version
// Proof of operating.md: the record is damaged
// Proof of operating.md: a file of the state directory is damaged
// Proof of SECURITY.md: steers and approves rollouts; any other file or text is renamed and reported
test('a record of a newer version stops rollouts, and a damaged one is set aside, by name', async (t) => {
  const rules = await openEngine(t);
  rules.put({ 'a.yaml': ruleText('first', 1) });
  const plane = await createControlPlaneInProcess(t, { flags: [...rules.flags, ...plan] });
  await plane.start();
  const workers = connectThree(t, plane);
  await eventually('all have the first', () => having(workers, 'first') === 3);
  await rules.record('{"format":4,"rollout":null}');
  rules.put({ 'a.yaml': ruleText('second', 1) });
  const expected =
    /it is of a newer version \(format 4\): run the version that wrote it, or remove it/;
  await eventually('it is named', async () => {
    const { stdout, stderr } = await plane.run('status');
    return expected.test(stdout + stderr);
  });
  t.is(everNotified(workers, 'second'), 0);
  await rules.record(undefined);
  await eventually('the rollout continues', () => having(workers, 'second') === 1);
  await rules.record('{"format":3,"rollout":');
  await eventually('it is set aside', async () => {
    const { stderr } = await plane.run('status');
    return /could not be read \(it is cut or damaged\) and is kept as .*unreadable/.test(stderr);
  });
  await plane.run('rollout', 'promote', '--reason', 'seen by eye');
  await eventually('all have it', () => having(workers, 'second') === 3);
});
