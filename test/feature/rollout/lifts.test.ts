// Tests lifts in a Git repository, written by the admin API.
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import type { StatusJson } from '../../../control-plane/server/admin/status-report.ts';
import { startAdminApi } from '../../support/admin-api.ts';
import { eventually } from '../../support/eventually.ts';
import { createGitRepository } from '../../support/git-repository.ts';
import { openGitStore } from '../../support/git-store.ts';
import { ruleText } from '../../support/rules-folder.ts';

test('a lift in Git is one commit with the reason, and is refused by name if the repository rejects the push', async (t) => {
  const repository = createGitRepository(t);
  const text = `# Kept.\n${ruleText('shop', 1)}`;
  repository.push({ 'limits/shop.yaml': text, 'README.md': 'x' });
  const { store } = openGitStore(t, repository, { folder: 'limits' });
  const { port } = await startAdminApi(t, {
    ...{ files: {}, store },
    webhook: { secret: 'secret', secretFile: undefined },
  });
  const lift = async (more: object) => {
    const answer = await fetch(`http://127.0.0.1:${port}/lifts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ domain: 'shop', descriptors: [[{ key: 'k', value: 'ada' }]], reason: 'a demo' },
        ...more,
      }),
    });
    const body = (await answer.json()) as {
      readonly until: string;
      readonly revision: string;
      readonly detail?: string;
    };
    return { status: answer.status, body };
  };
  const lifted = await lift({ for: '1h' });
  t.is(lifted.status, 200, lifted.body.detail);
  const { until, revision } = lifted.body;
  t.is(repository.gitAtRemote('rev-parse', 'main'), revision);
  t.is(
    repository.gitAtRemote('log', '-1', '--format=%an: %B', 'main'),
    `local: Lift shop.k_ada until ${until}: a demo\n\nAllow-Removal: yes\nRollout: now`,
  );
  t.is(
    repository.gitAtRemote('diff', '--unified=0', 'main~1', 'main').split('\n').at(-1),
    `+  - {key: k, value: ada, until: ${until}, rate_limit: {unlimited: true}}  # lifted by local: a demo`,
  );
  await eventually(
    'it can be ended at once',
    async () => (await lift({ end: true })).status === 200,
  );
  t.is(repository.gitAtRemote('show', 'main:limits/shop.yaml'), text.trim());

  const hook = join(repository.path, 'hooks', 'pre-receive');
  writeFileSync(hook, '#!/bin/sh\necho "main is protected" >&2\nexit 1\n');
  chmodSync(hook, 0o755);
  const refused = await lift({ for: '1h' });
  t.is(refused.status, 503);
  t.regex(refused.body.detail ?? '', /main is protected/);
});

test('a control plane whose clock differs from the others creates no lift, and reports that', async (t) => {
  const clockProblem = 'the clock of this control plane is 1m35s behind that of https://b:18001';
  const { port } = await startAdminApi(t, {
    files: { 'shop.yaml': ruleText('shop', 1) },
    clockProblem,
  });
  const api = `http://127.0.0.1:${port}`;
  const lifted = await fetch(`${api}/lifts`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ domain: 'shop', descriptors: [[{ key: 'k', value: 'ada' }]], reason: 'a demo' },
      for: '1h',
    }),
  });
  t.is(lifted.status, 409);
  t.like(await lifted.json(), { detail: `no lift is made: ${clockProblem}` });
  const { notices } = (await (await fetch(`${api}/status`)).json()) as StatusJson;
  t.like(notices?.at(-1), {
    title: 'Clocks of control planes differ',
    effect: `${clockProblem}: it makes no lifts, and its times are not theirs`,
  });
});
