// Tests what `history` reports as the outcome of each revision, also after a restart of the control plane.
import test from 'ava';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { createGitRepository } from '../../support/git-repository.ts';
import { ruleText } from '../../support/rules-folder.ts';

const time = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z';

test('history lists when each revision was in force, which were invalid, and the actors, over restarts', async (t) => {
  const repository = createGitRepository(t, { 'a.yaml': ruleText('first', 1) });
  const plane = await createControlPlaneInProcess(t, {
    flags: ['--git', repository.url, '--git-poll', '200ms'],
  });
  await plane.start();
  const is = (verdict: string, id: string) =>
    eventually(`${id} is ${verdict}`, async () => {
      const { body } = await plane.fetch('/status');
      return body.verdict === verdict && body.newest.id === id;
    });
  repository.push({ 'a.yaml': ruleText('first', 1).replace('year', 'yaer') });
  const wrong = repository.gitAtRemote('rev-parse', 'main');
  await is('invalid', wrong);
  repository.push({ 'a.yaml': ruleText('first', 2) });
  await is('no_workers', repository.gitAtRemote('rev-parse', 'main'));
  const pushed = await plane.fetch('/domains/first', {
    method: 'PUT',
    headers: { 'content-type': 'application/yaml', 'if-match': '*' },
    body: ruleText('first', 3),
  });
  t.is(pushed.status, 200, JSON.stringify(pushed.body));
  await is('no_workers', repository.gitAtRemote('rev-parse', 'main'));

  const { stdout } = await plane.run('history');
  const lines = stdout.trimEnd().split('\n');
  const wanted = [
    `^[0-9a-f]{12}  ${time}  local: .*  \\[in force since (${time})\\]$`,
    `^[0-9a-f]{12}  ${time}  .*  \\[was in force from (${time}) to (${time})\\]$`,
    `^${wrong.slice(0, 12)}  ${time}  .*  \\[invalid at ${time}\\]$`,
    `^ {14}a\\.yaml:4:25: .*yaer`,
    `^[0-9a-f]{12}  ${time}  .*  \\[was in force from (${time}) to (${time})\\]$`,
    // Revisions from before the control plane's start.
    `^[0-9a-f]{12}  ${time}  .*: begin  \\[not known\\]$`,
  ];
  t.is(lines.length, wanted.length, stdout);
  const found = wanted.map((text, index) => new RegExp(text).exec(lines[index] ?? '') ?? []);
  for (const [index, match] of found.entries()) t.true(match.length > 0, lines[index]);
  const [newest, second, , , first] = found;
  t.is(newest?.[1], second?.[2], 'one is in force until the next one is');
  t.is(second?.[1], first?.[2]);

  const ofRule = (await plane.run('history', '--rule', 'first:k=v')).stdout.replaceAll(
    /[0-9a-f]{12} {2}\S+ {2}/g,
    '',
  );
  t.regex(
    ofRule,
    /^2 per year -> 3 per year\n {14}local: .*\n1 per year -> 2 per year\n {14}.*\nno rule -> 1 per year\n {14}.*\n$/,
  );
  t.is(
    (await plane.run('history', '--rule', 'first.k', '--limit', '1')).stdout.split('\n').length,
    3,
  );

  await plane.stop();
  await plane.start();
  t.is((await plane.run('history')).stdout, stdout);
});
