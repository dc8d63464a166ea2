// Tests what `audit` and `GET /activity` list as done, by whom and why, also after a restart of the control plane.
import test from 'ava';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

test('audit lists actions, the newest first, filtered by person, object and time, and continues after a restart', async (t) => {
  const rules = createRulesFolder(t, { 'a.yaml': ruleText('first', 1) });
  const plane = await createControlPlaneInProcess(t, { flags: ['--config-dir', rules.path] });
  await plane.start();
  const put = (limit: number, ifMatch: string) =>
    plane.fetch('/domains/first', {
      method: 'PUT',
      headers: { 'content-type': 'application/yaml', 'if-match': ifMatch },
      body: ruleText('first', limit),
    });
  t.is((await put(2, '*')).status, 200);
  t.is((await put(3, '"0123456789abcdef"')).status, 412);
  await eventually('it is in force', async () => {
    const { body } = await plane.fetch('/activity?object=came into force');
    return body.deeds.length === 2;
  });

  // Automatic actions of control planes and workers, such as each start, have no user.
  const lines = async (...flags: string[]) => {
    const { stdout } = await plane.run('audit', ...flags);
    return stdout
      .trimEnd()
      .split('\n')
      .filter((line) => !line.includes('  fleet: '));
  };
  const all = await lines();
  t.is(all.length, 4, all.join('\n'));
  t.regex(
    all.find((line) => line.includes('412')) ?? '',
    /Z {2}local: put domain first {2}\[412: /,
  );
  t.true(all.some((line) => /Z {2}local: put domain first {2}\[done\]$/.test(line)));
  t.true(
    all.some((line) => /Z {2}.*: revision [0-9a-f]{12}.* came into force {2}\[done\]$/.test(line)),
  );
  const times = all.map((line) => line.slice(0, 24));
  t.deepEqual(times, times.toSorted().reverse());
  t.is((await lines('--object', 'DOMAIN first')).length, 3);
  t.deepEqual(await lines('--who', 'nobody'), ['no activity is recorded']);
  t.is((await lines('--since', '1h', '--limit', '1')).length, 1);
  const wrong = await plane.run('audit', '--since', 'yesterday');
  t.is(wrong.exitCode, 2);
  t.regex(wrong.stderr, /--since yesterday: /);
  t.is((await plane.fetch('/activity?since=yesterday')).status, 400);

  await plane.stop();
  await plane.start();
  t.deepEqual(await lines(), all);
});
