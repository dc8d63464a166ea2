// The control plane from outside, on a Git repository: a webhook brings commits to the workers. Changes through the admin
// API, and what is held back: control-plane/admin/admin-server.test.ts, test/contract/config-store.ts.
import { createHmac } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import {
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import {
  createGitRepository,
  type GitRepository,
  gitEnvironment,
} from '../support/git-repository.ts';
import { ruleText } from '../support/rules-folder.ts';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.ts';

const secret = 'a secret of the webhook';
const tokens = {
  reader: 'reader-token-0123456789',
  writer: 'writer-token-0123456789',
  worker: 'worker-token-0123456789',
};

interface GitRun {
  readonly repository: GitRepository;
  readonly plane: ControlPlaneProcess;
}

/** Polled so rarely that only webhooks and looks count. */
async function startOnGit(t: ExecutionContext, poll = '1h'): Promise<GitRun> {
  const repository = createGitRepository(t);
  repository.push({ 'limits/shop.yaml': ruleText('shop', 11), 'README.md': 'nothing' });
  const tokensFile = join(repository.folder, 'tokens');
  const lines = [
    '# name scope token',
    `ann read ${tokens.reader}`,
    `bob write ${tokens.writer}`,
    `fleet xds ${tokens.worker}`,
  ];
  writeFileSync(tokensFile, `${lines.join('\n')}\n`);
  const secretFile = join(repository.folder, 'secret');
  writeFileSync(secretFile, `${secret}\n`);
  const plane = await createControlPlaneProcess(t, {
    flags: [
      ...['--git', repository.url, '--git-ref', 'main', '--git-path', 'limits', '--git-poll', poll],
      ...['--webhook-secret-file', secretFile],
      ...['--admin-tokens-file', tokensFile, '--xds-tokens-file', tokensFile],
    ],
    env: {
      ...(gitEnvironment as Record<string, string>),
      RATELANE_ADMIN_TOKEN: tokens.writer,
    },
  });
  await plane.start();
  return { repository, plane };
}

function startWorker(t: ExecutionContext, plane: ControlPlaneProcess): Promise<WorkerProcess> {
  return startWorkerProcess(t, {
    env: {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      BACKEND_TYPE: 'memory',
      CONFIG_GRPC_XDS_NODE_ID: 'w1',
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '500ms',
      CONFIG_GRPC_XDS_SERVER_URL: plane.xdsAddress,
      CONFIG_GRPC_XDS_CLIENT_ADDITIONAL_HEADERS: `authorization:Bearer ${tokens.worker}`,
    },
  });
}

function asked(token: string, init: RequestInit = {}): RequestInit {
  return { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } };
}

async function callWebhook({ plane }: GitRun, signer = secret) {
  const body = JSON.stringify({ ref: 'refs/heads/main' });
  const signature = createHmac('sha256', signer).update(body).digest('hex');
  return plane.fetch('/webhooks', {
    method: 'POST',
    body,
    headers: { 'x-hub-signature-256': `sha256=${signature}`, 'content-type': 'application/json' },
  });
}

async function hasLimit(worker: WorkerProcess, requests: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${worker.ports.debug}/rlconfig`);
  return (await answer.text()).includes(`requests_per_unit=${requests},`);
}

test.serial(
  'a webhook brings a commit to the workers; a wrong signature does nothing',
  async (t) => {
    const run = await startOnGit(t);
    const { repository, plane } = run;
    const worker = await startWorker(t, plane);
    await eventually('the worker has the rules', () => hasLimit(worker, 11));

    const commit = repository.push({ 'limits/shop.yaml': ruleText('shop', 12) });
    t.is((await callWebhook(run, 'another secret')).status, 401);
    t.is((await plane.fetch('/webhooks', { method: 'POST', body: '{}' })).status, 401);
    t.is((await callWebhook(run)).status, 202);
    await eventually('the commit is in force on the worker', () => hasLimit(worker, 12));
    const status = await plane.run('status', '--revision', commit, '--wait', '--timeout', '60s');
    t.is(status.exitCode, 0, status.stderr);

    repository.push({ 'limits/shop.yaml': 'domain: [' }, 'a mistake');
    const mistaken = await plane.run('status');
    t.is(mistaken.exitCode, 4, 'status itself looks at the repository');
    t.regex(mistaken.stdout, /limits\/shop\.yaml:1:\d+: not valid YAML/);
    t.true(await hasLimit(worker, 12));
    repository.push({ 'limits/shop.yaml': ruleText('shop', 13) });
    t.is((await callWebhook(run)).status, 202);
    await eventually('the repair goes out', () => hasLimit(worker, 13));

    repository.hide();
    t.is((await plane.run('status')).exitCode, 3);
    t.is(await plane.end('SIGKILL'), 'SIGKILL');
    await plane.start();
    const { body } = await plane.fetch('/status', asked(tokens.reader));
    t.like(body, { verdict: 'pending', stale: { reason: 'store_unreachable' } });
    await eventually('the worker is back', async () => {
      const { workers } = (await plane.fetch('/status', asked(tokens.reader))).body;
      return workers.inForce === 1;
    });
    repository.show();
    t.is((await plane.run('status', '--wait', '--timeout', '60s')).exitCode, 0);
  },
);
