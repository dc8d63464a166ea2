// Tests commands that change rules in a directory: push, history, rollback and their conflicts, and the rules that a
// worker gets.
import test from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

test('push, history and rollback, and a conflict that changes nothing', async (t) => {
  const rules = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 31) });
  const mine = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 32) });
  mine.write('nested/mail.yaml', ruleText('mail', 33));
  const plane = await createControlPlaneInProcess(t, { flags: ['--config-dir', rules.path] });
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
  // The same state occurs twice, but only the later one is in force.
  const marks = (await plane.run('history')).stdout.trimEnd().split('\n');
  t.deepEqual(
    marks.map((line) => line.includes('[in force since ')),
    [true, false, false],
  );
  t.is((await plane.run('rollback', 'abcdef0123')).exitCode, 1);
  t.regex(plane.output(), /audit: .*push a revision.*done/);
  t.regex(plane.output(), /audit: .*roll back to .*done/);
});

test('watch shows what a worker gets, and a refusal is shown to all users', async (t) => {
  const rules = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 41) });
  const plane = await createControlPlaneInProcess(t, { flags: ['--config-dir', rules.path] });
  await plane.start();
  const xds = ['--xds', plane.xdsAddress, '--once'];
  const shown = await plane.run('status');
  t.regex(shown.stdout, /is served, but no workers are connected/);
  const watched = await runInProcess(['watch', ...xds]);
  t.is(watched.code, 0, watched.err);
  t.regex(watched.out, /1 resources {2}ACK\n {2}shop {2}domain shop, 1 rules, \d+ bytes\n$/);
  const refused = await runInProcess(['watch', ...xds, '--nack', 'no such thing', '--json']);
  t.like(JSON.parse(refused.out), { answer: 'NACK', resources: [{ domain: 'shop' }] });
  await eventually('the refusal is counted', async () => {
    const { body } = await plane.fetch('/metrics');
    return /^ratelane_control_plane_xds_nacks_total\{mode="sotw"\} 1$/m.test(body);
  });
});
