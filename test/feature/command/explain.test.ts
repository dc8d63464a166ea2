// Tests the explain command, which answers why a request was refused, or was not.
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { startAdminApi } from '../../support/admin-api.ts';
import { type CommandRun, runInProcess } from '../../support/command-run.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { testScenarios } from '../../support/scenarios.ts';

const shop = `domain: shop
descriptors:
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 100}}
`;

/** 2026-11-21T12:34:56Z */
const clock = { ...systemClock, wallMs: () => 1_795_264_496_000 };

function explain(t: ExecutionContext, ...args: string[]): Promise<CommandRun> {
  const folder = createRulesFolder(t, { 'shop.yaml': shop });
  return runInProcess(['explain', join(folder.path, 'shop.yaml'), ...args], { clock });
}

/** Removes the folder from positions. */
function plain(text: string): string {
  return text.replaceAll(/\/\S+\/(?=shop\.yaml)/g, '');
}

testScenarios(test, new URL('explain.txt', import.meta.url), (words) =>
  runInProcess(words, { clock }),
);

test('characters that a terminal would interpret are shown as their codes', async (t) => {
  const { out } = await explain(t, '--domain', 'shop', '--descriptor', 'user=a\u001b[2J');
  t.false(out.includes('\u001b'));
  t.true(out.includes('user=a\\u{1b}[2J'));
});

test('a request is explained by the rules in force on a control plane, or by another of its revisions', async (t) => {
  const { port, rules, store } = await startAdminApi(t, { files: { 'shop.yaml': shop } });
  const { id } = await store.read();
  const request = ['--domain', 'shop', '--descriptor', 'user=ada'];
  const api = ['--admin-url', `http://127.0.0.1:${port}`];
  const ask = (side: string, ...args: string[]) =>
    runInProcess(['explain', side, ...request, ...args], { clock });
  const ofFiles = await explain(t, ...request);
  const inForce = { code: 0, out: plain(ofFiles.out), err: '' };
  t.deepEqual(await ask('server:', ...api), inForce);
  t.deepEqual(await ask(`server:${id.slice(0, 12)}`, ...api), inForce);
  rules.write('shop.yaml', 'domain: shop\ndescriptors: 5\n');
  const wrong = (await store.read()).id;
  t.deepEqual(await ask('server:', ...api), inForce, 'not by the newest one');
  const refused = await ask(`server:${wrong}`, ...api);
  t.is(refused.code, 1);
  t.regex(refused.err, /^shop\.yaml:2:14: error: /);
  t.regex((await ask('server:012', ...api)).err, /^error: 'server:012': It has 3 of /);
  const two = await runInProcess(['explain', 'server:', 'shop.yaml', ...request, ...api]);
  t.is(two.code, 2);
  t.regex(two.err, /^error: server: cannot be combined with /);
  const idle = await ask('shop.yaml', ...api);
  t.is(idle.code, 2);
  t.regex(idle.err, /^error: --admin-url needs server: in place of PATH\n/);
});
