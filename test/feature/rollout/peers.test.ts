// What control planes of one fleet need of each other in a rollout, and of their store: tokens, writes, and the
// revision before.
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  type ControlPlaneInProcess,
  createControlPlaneInProcess,
} from '../../support/control-plane-in-process.ts';
import { connectWorker, type DiscoveryWorker } from '../../support/discovery-worker.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { createGitRepository } from '../../support/git-repository.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

const plan = ['--rollout', 'canary=10%,hold=1h'];
const portOf = ({ xdsAddress }: ControlPlaneInProcess) => Number(xdsAddress.split(':')[1]);
const having = (workers: readonly DiscoveryWorker[], text: string) =>
  workers.filter(({ sees }) => sees(text)).length;

/** Two control planes that are peers, with three workers each, and the state directory of the first. */
async function startTwo(
  t: ExecutionContext,
  flags: readonly string[],
  flagsOf: (own: 0 | 1) => readonly string[] = () => [],
) {
  const ports = [await freePort(), await freePort()] as const;
  const stateDirectory = createRulesFolder(t).path;
  const create = (own: 0 | 1) =>
    createControlPlaneInProcess(t, {
      flags: [...flags, ...flagsOf(own), ...plan, '--peers', `http://127.0.0.1:${ports[1 - own]}`],
      adminPort: ports[own],
      ...(own === 0 && { stateDirectory }),
    });
  const planes = [await create(0), await create(1)] as const;
  await Promise.all(planes.map((plane) => plane.start()));
  const workers = planes.map((plane, index) =>
    ['a', 'b', 'c'].map((id) => connectWorker(t, portOf(plane), `${id}-${index}`)),
  );
  await eventually('all have the first', () => having(workers.flat(), 'first') === 6);
  return { planes, workers, stateDirectory };
}

test('where tokens are needed, the leader asks its peers with the one of its file', async (t) => {
  const rules = createRulesFolder(t);
  const files = createRulesFolder(t);
  rules.write('a.yaml', ruleText('first', 1));
  const token = 'r'.repeat(32);
  files.write('tokens', `peers read ${token}\n`);
  const path = (name: string) => join(files.path, name);
  const { planes, workers } = await startTwo(
    t,
    ['--config-dir', rules.path, '--admin-tokens-file', path('tokens')],
    (own) => {
      files.write(`token-${own}`, token);
      return ['--peers-token-file', path(`token-${own}`)];
    },
  );
  rules.write('a.yaml', ruleText('second', 1));
  await eventually('one of six has the second', () => having(workers.flat(), 'second') === 1);
  // One that the other does not know.
  for (const own of [0, 1]) writeFileSync(path(`token-${own}`), `${own}`.repeat(32));
  await eventually('the leader says what it waits for', async () => {
    const states = await Promise.all(
      planes.map((plane) =>
        plane.fetch('/rollouts', { headers: { authorization: `Bearer ${token}` } }),
      ),
    );
    return states.some(({ body }) => /gives no answer \(HTTP 401\)/.test(body.rollout?.text));
  });
  for (const plane of planes) t.false(plane.output().includes(token));
});

test('a repository that takes no such pushes: each control plane says so, and rolls out by itself', async (t) => {
  const repository = createGitRepository(t);
  repository.push({ 'a.yaml': ruleText('first', 1) });
  const hook = join(repository.path, 'hooks', 'pre-receive');
  const script = '#!/bin/sh\ngrep -q refs/ratelane/ || exit 0\necho "may only read" >&2\nexit 1\n';
  writeFileSync(hook, script, { mode: 0o755 });
  const { planes, workers } = await startTwo(t, ['--git', repository.url, '--git-poll', '200ms']);
  repository.push({ 'a.yaml': ruleText('second', 1) });
  await eventually('one of each three has it', () =>
    workers.every((each) => having(each, 'second') === 1),
  );
  for (const plane of planes) {
    const said = plane.output().match(/takes no writes from this control plane/g);
    t.is(said?.length, 1);
    t.regex(plane.output(), /refs\/ratelane\/rollout\/\S+ of .*may only read.*by itself/);
  }
});

test('a control plane that is replaced in a rollout, without its state, serves what was in force before', async (t) => {
  const repository = createGitRepository(t);
  repository.push({ 'a.yaml': ruleText('first', 1) });
  const flags = ['--git', repository.url, '--git-poll', '200ms'];
  const { planes, workers, stateDirectory } = await startTwo(t, flags);
  repository.push({ 'a.yaml': ruleText('second', 1) });
  await eventually('one of six has it', () => having(workers.flat(), 'second') === 1);
  const has = workers.flat().find(({ sees }) => sees('second'))?.id;
  await planes[0].stop();
  rmSync(stateDirectory, { recursive: true });
  await planes[0].start();
  const again = ['a-0', 'b-0', 'c-0'].map((id) => connectWorker(t, portOf(planes[0]), id));
  await eventually('all are served', () => again.every(({ seen }) => seen.length > 0));
  t.deepEqual(
    again.filter(({ seen }) => seen.some((text) => text.includes('second'))).map(({ id }) => id),
    ['a-0', 'b-0', 'c-0'].filter((id) => id === has),
  );
});
