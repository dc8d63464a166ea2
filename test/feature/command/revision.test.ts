// Tests revisions as arguments of commands: full ids, or prefixes. admin-server.txt tests the admin API's answers.
import test from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

const commands = (revision: string, folder: string) => [
  ['status', '--revision', revision],
  ['push', folder, '--expected-revision', revision],
  ['rollback', revision],
  ['rollback', 'abcdef012345', '--expected-revision', revision],
  ['approve', revision, '--reason', 'meant'],
];

test('a prefix that is too short is refused, and the message contains the minimum', async (t) => {
  const folder = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 1) });
  for (const args of commands('abcde', folder.path)) {
    const { code, err } = await runInProcess([...args, '--admin-url', 'http://127.0.0.1:9']);
    t.is(code, 2, args.join(' '));
    t.regex(err, /'abcde' is invalid.*\. It has 5 of the at least 6 characters /, args.join(' '));
  }
});

test('an invalid revision is refused before any control plane is called', async (t) => {
  for (const args of commands('HEAD~1', 'rules')) {
    const { code, err } = await runInProcess([...args, '--admin-url', 'http://127.0.0.1:9']);
    t.is(code, 2, args.join(' '));
    t.regex(err, /'HEAD~1' is invalid.*\. A revision has the characters 0-9 and a-f; /);
  }
});

test('the help of each option and argument for a revision states the shortest prefix', async (t) => {
  for (const [name, count] of [
    ['status', 1],
    ['push', 1],
    ['rollback', 2],
    ['approve', 1],
  ] as const) {
    const { out } = await runInProcess([name, '--help']);
    const shown = out.replaceAll(/\s+/g, ' ').match(/at least 6 characters/g);
    t.is(shown?.length, count, out);
  }
});
