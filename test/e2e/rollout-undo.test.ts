// How long an undo takes from its author to the last worker, by each way there is: with three real workers on a
// Git repository, and with two hundred streams on a directory.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  type CommandResult,
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createGitRepository } from '../support/git-repository.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { connectStreamWorker } from '../support/stream-worker.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const plan = ['--rollout', 'canary=10%,hold=1h'];
const mostSeconds = 10;

/** What an operator does, when the revision `bad` is on trial. */
type Way = (controlPlane: ControlPlaneProcess, base: string) => Promise<void>;

const anywhere: Readonly<Record<string, Way>> = {
  async 'rollout abort'(controlPlane) {
    const { exitCode, stderr } = await controlPlane.run('rollout', 'abort', '--reason', 'bad');
    if (exitCode !== 0) throw new Error(stderr);
  },
  async rollback(controlPlane, base) {
    const { exitCode, stderr } = await controlPlane.run('rollback', base);
    if (exitCode !== 0) throw new Error(stderr);
  },
  async 'POST /rollbacks, as the console does'(controlPlane, base) {
    const body = JSON.stringify({ revision: base, message: 'bad' });
    const headers = { 'content-type': 'application/json' };
    const { status } = await controlPlane.fetch('/rollbacks', { method: 'POST', headers, body });
    if (status !== 201) throw new Error(`HTTP ${status}`);
  },
};

interface Observed {
  readonly count: number;
  /** How many workers have these rules. */
  having(text: string): Promise<number> | number;
}

async function measure(
  t: ExecutionContext,
  controlPlane: ControlPlaneProcess,
  workers: Observed,
  ways: Readonly<Record<string, Way>>,
  put: (name: string) => void,
): Promise<void> {
  const baseOf = async () => (await controlPlane.fetch('/status')).body.inForce.id;
  for (const [index, [name, undo]] of Object.entries(ways).entries()) {
    const base = await baseOf();
    put(`bad-${index}`);
    await controlPlane.fetch('/status?look=true');
    await eventually('some have it', async () => (await workers.having(`bad-${index}`)) > 0);
    const sinceMs = performance.now();
    await undo(controlPlane, base);
    await eventually(
      'all have the good one',
      async () => (await workers.having('good')) === workers.count,
      30_000,
    );
    const seconds = (performance.now() - sinceMs) / 1000;
    t.log(`${name}: ${seconds.toFixed(1)} s to the last of ${workers.count} workers`);
    t.true(seconds < mostSeconds, name);
    await eventually('no rollout is under way', async () => {
      const { rollout } = (await controlPlane.fetch('/rollouts')).body;
      return rollout === null;
    });
  }
}

test('an undo reaches three real workers within ten seconds by each way, from Git', async (t) => {
  const repository = createGitRepository(t);
  repository.push({ 'a.yaml': ruleText('good', 1) });
  const controlPlane = await createControlPlaneProcess(t, {
    // It is looked at every 30 seconds, but while something is on trial.
    flags: ['--git', repository.url, ...plan],
  });
  await controlPlane.start();
  const workers = await Promise.all(
    ['w-1', 'w-2', 'w-3'].map((id) =>
      startWorkerProcess(t, {
        readyTimeoutMs: 60_000,
        env: {
          BACKEND_TYPE: 'memory',
          CONFIG_TYPE: 'GRPC_XDS_SOTW',
          CONFIG_GRPC_XDS_NODE_ID: id,
          CONFIG_GRPC_XDS_SERVER_URL: controlPlane.xdsAddress,
        },
      }),
    ),
  );
  const having = async (text: string) => {
    const pages = await Promise.all(
      workers.map(async ({ ports }) =>
        (await fetch(`http://127.0.0.1:${ports.debug}/rlconfig`)).text(),
      ),
    );
    return pages.filter((page) => page.includes(text)).length;
  };
  const put = (name: string) => {
    repository.git('fetch', '--quiet', 'origin');
    repository.git('reset', '--quiet', '--hard', 'origin/main');
    repository.push({ 'a.yaml': ruleText(name, 1) });
  };
  const push: Way = async () => put('good');
  await measure(t, controlPlane, { count: 3, having }, { 'git push': push, ...anywhere }, put);
});

/** Pushes of the rules, and of the record, wait until `go` is there, for 60 s at most. */
const slowHook = `#!/bin/sh
for second in $(seq 600); do
  [ -e go ] && exit 0
  sleep 0.1
done
`;
/** The record is written all the same. */
const refusingHook = `#!/bin/sh
while read -r before after ref; do
  case "$ref" in refs/heads/*) echo 'the branch is protected'; exit 1;; esac
done
`;

for (const [what, hook, undo] of [
  ['takes long for pushes', slowHook, 'rollback'],
  ['takes long for pushes', slowHook, 'push'],
  ['refuses pushes', refusingHook, 'rollback'],
] as const) {
  test(`a Git host that ${what} keeps no revision with the workers on trial that a ${undo} undoes`, async (t) => {
    const repository = createGitRepository(t);
    repository.push({ 'a.yaml': ruleText('good', 1) });
    const controlPlane = await createControlPlaneProcess(t, {
      flags: ['--git', repository.url, ...plan],
    });
    await controlPlane.start();
    const address = controlPlane.xdsAddress;
    const workers = ['w-1', 'w-2', 'w-3'].map((id) => connectStreamWorker(t, { address, id }));
    const having = (text: string) => workers.filter((worker) => worker.has(text)).length;
    await eventually('all are served', () => having('good') === 3);
    repository.push({ 'a.yaml': ruleText('bad', 1) });
    await controlPlane.fetch('/status?look=true');
    await eventually('one has it', () => having('bad') === 1);
    const rules = createRulesFolder(t);
    rules.write('a.yaml', ruleText('good', 1));
    writeFileSync(join(repository.path, 'hooks', 'pre-receive'), hook, { mode: 0o755 });
    const base = (await controlPlane.fetch('/status')).body.inForce.id;
    let answered: CommandResult | undefined;
    const sinceMs = performance.now();
    const argument = { push: rules.path, rollback: base }[undo];
    const answer = controlPlane.run(undo, argument).then((result) => {
      answered = result;
    });
    await eventually('all have the good one', () => having('good') === 3, mostSeconds * 1000);
    t.log(`${((performance.now() - sinceMs) / 1000).toFixed(1)} s to the last worker`);
    if (hook === slowHook) {
      t.is(answered, undefined, 'the push is still under way');
      writeFileSync(join(repository.path, 'go'), '');
    }
    await answer;
    t.is(answered?.exitCode, hook === slowHook ? 0 : 2, answered?.stderr);
    if (hook === slowHook) return;
    t.regex(answered?.stderr ?? '', /the branch is protected/);
    await eventually('status says so', async () => {
      const { text } = (await controlPlane.fetch('/status')).body;
      return /taken back: undone by local: Roll back to [0-9a-f]{12}: revision/.test(text);
    });
  });
}

test('what is pushed in steps, or was in force never, undoes nothing', async (t) => {
  const rules = createRulesFolder(t);
  rules.write('a.yaml', ruleText('older', 1));
  const controlPlane = await createControlPlaneProcess(t, {
    flags: ['--config-dir', rules.path, ...plan],
  });
  await controlPlane.start();
  const address = controlPlane.xdsAddress;
  const workers = ['w-1', 'w-2', 'w-3'].map((id) => connectStreamWorker(t, { address, id }));
  const having = (text: string) => workers.filter((worker) => worker.has(text)).length;
  await eventually('all are served', () => having('older') === 3);
  const other = createRulesFolder(t);
  const push = async (name: string, flags: readonly string[] = []) => {
    other.write('a.yaml', ruleText(name, 1));
    const { exitCode, stderr } = await controlPlane.run('push', other.path, ...flags);
    t.is(exitCode, 0, stderr);
  };
  await push('good', ['--now', '--message', 'to have two']);
  await eventually('all have it', () => having('good') === 3);
  await push('tried');
  await eventually('one has it', () => having('tried') === 1);
  for (const [name, flags] of [
    ['new', []],
    ['older', ['--steps']],
  ] as const) {
    await push(name, flags);
    const { text } = (await controlPlane.fetch('/status?look=true')).body;
    t.regex(text, /waits for the rollout/);
    t.is(having('tried'), 1, name);
  }
});

test('an undo reaches two hundred workers within ten seconds by each way, from a directory', async (t) => {
  const rules = createRulesFolder(t);
  rules.write('a.yaml', ruleText('good', 1));
  const controlPlane = await createControlPlaneProcess(t, {
    flags: ['--config-dir', rules.path, ...plan],
  });
  await controlPlane.start();
  const address = controlPlane.xdsAddress;
  const workers = Array.from({ length: 200 }, (_, index) =>
    connectStreamWorker(t, { address, id: `w-${index}` }),
  );
  const having = (text: string) => workers.filter((worker) => worker.has(text)).length;
  await eventually('all are served', () => having('good') === 200);
  const put = (name: string) => rules.write('a.yaml', ruleText(name, 1));
  const file: Way = async () => put('good');
  await measure(t, controlPlane, { count: 200, having }, { 'the file': file, ...anywhere }, put);
});
