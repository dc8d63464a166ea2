// The control plane from outside, on a watched directory: real processes, two workers, and what people and pipelines
// see while rules change and are wrong.
import test, { type ExecutionContext } from 'ava';
import {
  type ControlPlaneProcess,
  createControlPlaneProcess,
} from '../support/control-plane-process.ts';
import { eventually } from '../support/eventually.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { startWorkerProcess, type WorkerProcess } from '../support/worker-process.ts';

function startWorker(t: ExecutionContext, server: string, id: string): Promise<WorkerProcess> {
  return startWorkerProcess(t, {
    env: {
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      BACKEND_TYPE: 'memory',
      CONFIG_GRPC_XDS_NODE_ID: id,
      CONFIG_GRPC_XDS_SERVER_URL: server,
      XDS_CLIENT_BACKOFF_INITIAL_INTERVAL: '200ms',
      XDS_CLIENT_BACKOFF_MAX_INTERVAL: '500ms',
    },
  });
}

/** The limits in force on a worker, as `unit=YEAR requests_per_unit=1`. */
async function hasLimit(worker: WorkerProcess, requests: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${worker.ports.debug}/rlconfig`);
  return (await answer.text()).includes(`requests_per_unit=${requests},`);
}

function atWorkers(workers: readonly WorkerProcess[], requests: number): Promise<void> {
  return eventually(`every worker has ${requests}`, async () => {
    const all = await Promise.all(workers.map((worker) => hasLimit(worker, requests)));
    return all.every(Boolean);
  });
}

function nothingWorseThanKnown(plane: ControlPlaneProcess): string {
  return plane
    .output()
    .split('\n')
    .filter((line) => line.includes('Unexpected error'))
    .join('\n');
}

test.serial('a change of a directory reaches every worker, and an error stays out', async (t) => {
  const rules = createRulesFolder(t);
  rules.write('shop.yaml', ruleText('shop', 11));
  const plane = await createControlPlaneProcess(t, { flags: ['--config-dir', rules.path] });
  await plane.start();
  const workers = await Promise.all([
    startWorker(t, plane.xdsAddress, 'w1'),
    startWorker(t, plane.xdsAddress, 'w2'),
  ]);
  await atWorkers(workers, 11);
  const both = await plane.run('status', '--wait', '--timeout', '60s');
  t.is(both.exitCode, 0, both.stderr);
  t.regex(both.stdout, /^revision [0-9a-f]{12} is in force on all 2 connected workers\n/);

  rules.replace('shop.yaml', ruleText('shop', 12));
  await atWorkers(workers, 12);

  rules.replace('shop.yaml', ruleText('shop', 13).replace('unit: year', 'unit: yaer'));
  await eventually('the error is seen', async () => {
    return (await plane.fetch('/status')).body.verdict === 'invalid';
  });
  const invalid = await plane.run('status');
  t.is(invalid.exitCode, 4);
  t.regex(invalid.stdout, /has 1 error \(shop\.yaml:4:25: .*yaer.*\): revision .* stays in force/);
  t.regex(invalid.stderr, /shop\.yaml:4:25: error: .*\n.*\n +\^\n +hint: did you mean 'year'/);
  const asJson = await plane.run('status', '--json');
  t.is(asJson.exitCode, 4);
  t.like(JSON.parse(asJson.stdout), {
    verdict: 'invalid',
    newest: { valid: false, problems: [{ file: 'shop.yaml', line: 4, column: 25 }] },
    stale: { reason: 'newest_invalid' },
    workers: { connected: 2, inForce: 2 },
  });
  t.regex(plane.output(), /is not served: shop\.yaml:4:25: invalid rate limit unit 'yaer'/);
  const { revisions } = (await plane.fetch('/revisions')).body;
  t.like(revisions[0], { newest: true, inForce: false });
  const newest = await plane.fetch(`/revisions/${revisions[0].id}`);
  t.like(newest.body, { valid: false, problems: [{ file: 'shop.yaml', line: 4 }] });
  const { body: metrics } = await plane.fetch('/metrics');
  t.regex(metrics, /^ratelane_control_plane_newest_revision_valid 0$/m);
  t.regex(metrics, /^ratelane_control_plane_newest_revision_errors 1$/m);
  t.regex(metrics, /^ratelane_control_plane_workers\{state="in_force"\} 2$/m);
  t.true(await hasLimit(workers[0] as WorkerProcess, 12), 'workers keep the last good rules');

  rules.replace('shop.yaml', ruleText('shop', 14));
  await atWorkers(workers, 14);
  t.is((await plane.run('status', '--wait', '--timeout', '60s')).exitCode, 0);
  t.is(nothingWorseThanKnown(plane), '');
  t.is(await plane.end('SIGTERM'), 0);
});

test.serial('push, history and rollback, and a conflict that changes nothing', async (t) => {
  const rules = createRulesFolder(t);
  rules.write('shop.yaml', ruleText('shop', 31));
  const mine = createRulesFolder(t);
  mine.write('shop.yaml', ruleText('shop', 32));
  mine.write('nested/mail.yaml', ruleText('mail', 33));
  const plane = await createControlPlaneProcess(t, { flags: ['--config-dir', rules.path] });
  await plane.start();
  const first = JSON.parse((await plane.run('history', '--json')).stdout).revisions[0].id;

  const pushed = await plane.run('push', mine.path, '-m', 'raise', '--expected-revision', first);
  t.is(pushed.exitCode, 0, pushed.stderr);
  const again = await plane.run('push', mine.path);
  t.deepEqual([again.exitCode, again.stdout], [0, 'nothing had to be changed\n']);
  const { domains } = (await plane.fetch('/domains')).body;
  t.deepEqual(
    domains.map((each: { domain: string; files: string[] }) => [each.domain, each.files]),
    [
      ['mail', ['nested/mail.yaml']],
      ['shop', ['shop.yaml']],
    ],
  );

  mine.write('shop.yaml', ruleText('shop', 34));
  const late = await plane.run('push', mine.path, '--expected-revision', first);
  t.is(late.exitCode, 5);
  t.regex(late.stderr, /the newest revision is [0-9a-f]{40}, not/);
  mine.write('shop.yaml', ruleText('shop', 34).replace('year', 'yaer'));
  const wrong = await plane.run('push', mine.path);
  t.is(wrong.exitCode, 1);
  t.regex(wrong.stderr, /^shop\.yaml:4:25: error: /);

  const history = await plane.run('history');
  t.is(history.exitCode, 0);
  t.regex(
    history.stdout,
    /^[0-9a-f]{12} {2}\S+ {2}local: raise {2}\[in force since \S+\]\n[0-9a-f]{12} /,
  );
  const diff = await plane.fetch(`/revisions/diff?from=${first}`);
  t.deepEqual(diff.body.files, [
    { path: 'nested/mail.yaml', change: 'added' },
    { path: 'shop.yaml', change: 'changed' },
  ]);
  t.true(diff.body.changes.some(({ kind }: { kind: string }) => kind === 'raised'));

  const back = await plane.run('rollback', first.slice(0, 12));
  t.is(back.exitCode, 0, back.stderr);
  const noWorkers = ['--min-workers', '0'];
  const asked = ['--revision', first.slice(0, 12), '--wait'];
  t.is((await plane.run('status', ...asked, ...noWorkers)).exitCode, 0);
  t.deepEqual((await plane.fetch('/domains/shop')).body.files, [
    { path: 'shop.yaml', yaml: ruleText('shop', 31) },
  ]);
  // The same state twice, but in force is what came last.
  const marks = (await plane.run('history')).stdout.trimEnd().split('\n');
  t.deepEqual(
    marks.map((line) => line.includes('[in force since ')),
    [true, false, false],
  );
  t.is((await plane.run('rollback', 'abcdef0123')).exitCode, 1);
  t.regex(plane.output(), /audit: .*push a revision.*done/);
  t.regex(plane.output(), /audit: .*roll back to .*done/);
});

test.serial('watch shows what a worker gets, and a refusal is shown to everybody', async (t) => {
  const rules = createRulesFolder(t);
  rules.write('shop.yaml', ruleText('shop', 41));
  const plane = await createControlPlaneProcess(t, { flags: ['--config-dir', rules.path] });
  await plane.start();
  const xds = ['--xds', plane.xdsAddress, '--once'];
  const shown = await plane.run('status');
  t.regex(shown.stdout, /is served, but no workers are connected/);
  const watched = await plane.runElsewhere('watch', ...xds);
  t.is(watched.exitCode, 0, watched.stderr);
  t.regex(watched.stdout, /1 resources {2}ACK\n {2}shop {2}domain shop, 1 rules, \d+ bytes\n$/);
  const refused = await plane.runElsewhere('watch', ...xds, '--nack', 'no such thing', '--json');
  t.like(JSON.parse(refused.stdout), { answer: 'NACK', resources: [{ domain: 'shop' }] });
  await eventually('the refusal is counted', async () => {
    const { body } = await plane.fetch('/metrics');
    return /^ratelane_control_plane_xds_nacks_total\{mode="sotw"\} 1$/m.test(body);
  });
});
