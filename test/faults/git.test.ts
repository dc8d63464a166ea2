// What happens on the way from a control plane to its Git repository: workers keep what they have, the
// admin API answers and says what is stale, and the newest commit goes out once it can be had.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createGitRepository, gitEnvironment, serveOverHttp } from '../support/git-repository.ts';
import { ruleText } from '../support/rules-folder.ts';
import { type Fault, startTcpProxy } from '../support/tcp-proxy.ts';
import { startFollower } from './rules-follower.ts';

const patienceMs = 30_000;

async function startOnGit(t: ExecutionContext) {
  const repository = createGitRepository(t);
  repository.push({ 'd.yaml': ruleText('d', 11) });
  const access = { username: 'ann', password: 'a password' };
  const served = new URL(await serveOverHttp(t, repository, access));
  const proxy = await startTcpProxy(t, Number(served.port));
  served.port = String(proxy.port);
  const passwordFile = join(repository.folder, 'password');
  writeFileSync(passwordFile, `${access.password}\n`);
  const credentials = ['--git-username', access.username, '--git-password-file', passwordFile];
  const plane = await createControlPlaneProcess(t, {
    flags: ['--git', served.href, '--git-poll', '1s', ...credentials],
    env: gitEnvironment as Record<string, string>,
  });
  await plane.start();
  const follower = await startFollower(t, plane.xdsAddress, 11);
  return { follower, plane, proxy, repository, access, url: served.href };
}

for (const fault of [
  { kind: 'latency', ms: 200 },
  { kind: 'drip', bytes: 64, everyMs: 10 },
] as const satisfies Fault[]) {
  test.serial(`the repository is slow (${fault.kind}): commits come`, async (t) => {
    const { follower, plane, proxy, repository } = await startOnGit(t);
    proxy.inject(fault);
    repository.push({ 'd.yaml': ruleText('d', 12) });
    await follower.becomes(12);
    t.notRegex(plane.output(), /cannot be read/);
  });
}

test.serial('the repository is silent (stall): nobody waits for it', async (t) => {
  const { follower, plane, proxy, repository } = await startOnGit(t);
  proxy.inject({ kind: 'stall' });
  repository.push({ 'd.yaml': ruleText('d', 12) });
  await eventually('it is asked', () => proxy.open > 0, patienceMs);
  await follower.checkInForce(11);
  const { status } = await plane.fetch('/status');
  t.is(status, 200);
  proxy.heal();
  await follower.becomes(12);
});

for (const kind of ['reset', 'half-close', 'cut'] as const) {
  test.serial(
    `the way to the repository is broken (${kind}): the last good revision stays`,
    async (t) => {
      const { access, follower, plane, proxy, repository, url } = await startOnGit(t);
      proxy.inject({ kind });
      const commit = repository.push({ 'd.yaml': ruleText('d', 12) });
      await eventually('it is said', () => plane.output().includes('cannot be read'), patienceMs);
      const { body } = await plane.fetch('/status');
      t.like(body, { verdict: 'pending', stale: { reason: 'store_unreachable' } });
      await follower.checkInForce(11);

      proxy.heal();
      const healedMs = performance.now();
      await follower.becomes(12);
      t.log(`in force ${Math.round(performance.now() - healedMs)} ms after the repair`);
      const status = await plane.run('status', '--revision', commit, '--wait', '--timeout', '30s');
      t.is(status.exitCode, 0, status.stderr);
      const said = (what: string) =>
        plane.output().match(new RegExp(`The store ${url} .*${what}`, 'g')) ?? [];
      // A failure of another kind may have come first, and is said as well.
      const lost = said('cannot be read');
      t.true(lost.length >= 1 && lost.length <= 3, lost.join('\n'));
      t.true(said('can be read again, after').length >= 1, plane.output());
      t.false(plane.output().includes(access.password));
    },
  );
}
