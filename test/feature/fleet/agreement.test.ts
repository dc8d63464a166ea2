// Tests workers whose settings make them count differently: what each shows, and what their control plane reports.
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';

function startWorker(
  t: ExecutionContext,
  server: string,
  id: string,
  env: Readonly<Record<string, string>> = {},
): Promise<WorkerProcess> {
  return startWorkerProcess(t, {
    env: {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: server,
      CONFIG_GRPC_XDS_NODE_ID: id,
      BACKEND_TYPE: 'memory',
      ...env,
    },
  });
}

/** From /status, once the other pages show the same. */
async function shownAgreement(t: ExecutionContext, worker: WorkerProcess): Promise<string> {
  const status = await worker.page('/status');
  const [, hash = ''] = /^agreement: ([0-9a-f]{8}), the same on all workers/m.exec(status) ?? [];
  t.regex(await worker.page('/settings'), new RegExp(`^agreement: ${hash} \\(`, 'm'));
  const number = Number.parseInt(hash, 16);
  t.regex(await worker.page('/stats'), new RegExp(`^ratelimit\\.agreement: ${number}$`, 'm'));
  return hash;
}

test('a worker with another start of the week is shown as different by its pages and by the control plane', async (t) => {
  const rules = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 1) });
  const plane = await createControlPlaneInProcess(t, { flags: ['--config-dir', rules.path] });
  await plane.start();

  // One after the other: the first to connect is the example that the warning names.
  const one = await startWorker(t, plane.xdsAddress, 'one');
  const two = await startWorker(t, plane.xdsAddress, 'two', { NEAR_LIMIT_RATIO: '0.5' });
  const usual = await shownAgreement(t, one);
  t.is(await shownAgreement(t, two), usual);
  const agreed = (await plane.fetch('/status')).body;
  t.deepEqual([agreed.workers.connected, agreed.disagreements], [2, []]);

  const odd = await startWorker(t, plane.xdsAddress, 'odd', {
    WEEK_RATE_LIMIT_RESET_DAY: 'Monday',
  });
  const other = await shownAgreement(t, odd);
  t.not(other, usual);
  t.regex(await odd.page('/status'), /^agreement: .*\n(?: {2}.*\n)* {2}weeks begin on: Monday$/m);

  const differing = await plane.run('status', '--wait', '--timeout', '10s');
  t.is(differing.exitCode, 0, 'the rules are in force anyway');
  t.regex(differing.stdout, /on all 3 connected workers\n/);
  t.regex(
    differing.stderr,
    new RegExp(
      `^warning: workers of node group '\\w+' count differently, because their settings differ: 2 have agreement ${usual} \\(one is one at \\S+\\), 1 has agreement ${other} \\(odd at \\S+\\); .*\\n`,
    ),
  );

  const asJson = await plane.run('status', '--json');
  t.like(asJson, { exitCode: 0, stderr: '' });
  const [disagreement, ...more] = JSON.parse(asJson.stdout).disagreements;
  t.deepEqual(more, []);
  t.like(disagreement, {
    count: 2,
    agreements: [
      { agreement: usual, workers: 2, example: { id: 'one' } },
      { agreement: other, workers: 1, example: { id: 'odd' } },
    ],
  });
});
