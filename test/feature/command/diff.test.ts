// Tests the diff command: it shows the changes for requests, whatever changes in the files.
import test from 'ava';
import { startAdminApi } from '../../support/admin-api.ts';
import { runInProcess } from '../../support/command-run.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';
import { testScenarios } from '../../support/scenarios.ts';

const perHour = (number: number) =>
  `domain: shop\ndescriptors:\n  - {key: k, rate_limit: {unit: hour, requests_per_unit: ${number}}}\n`;

testScenarios(test, new URL('diff.txt', import.meta.url), (words) => runInProcess(words));

test('two revisions of a control plane are compared like files', async (t) => {
  const files = { 'r.yaml': perHour(5) };
  const { port, rules, store } = await startAdminApi(t, { files });
  const first = (await store.read()).id;
  rules.write('r.yaml', perHour(6));
  const second = (await store.read()).id;
  rules.write('r.yaml', 'domain: shop\ndescriptors: 5\n');
  const wrong = (await store.read()).id;
  const api = ['--admin-url', `http://127.0.0.1:${port}`];
  const side = (id: string) => `server:${id.slice(0, 12)}`;
  const folder = createRulesFolder(t, { 'before/r.yaml': perHour(5), 'after/r.yaml': perHour(6) });
  const sides = ['before', 'after'].map((side) => `${folder.path}/${side}`);
  const ofFiles = await runInProcess(['diff', ...sides, '--json']);
  const json = sides.reduce((text, side) => text.replaceAll(`${side}/`, ''), ofFiles.out);
  const ofRevisions = ['diff', side(first), side(second), ...api];
  t.deepEqual(await runInProcess([...ofRevisions, '--json']), { code: 1, out: json, err: '' });
  const text =
    'domain shop\n  k=(any)  (r.yaml:3:5)\n    raised: 5 per hour -> 6 per hour\n\n1 change\n';
  t.deepEqual(await runInProcess(ofRevisions), { code: 1, out: text, err: '' });
  t.like(await runInProcess(['diff', side(first), side(first), ...api]), { code: 0 });
  const refused = await runInProcess(['diff', side(first), side(wrong), ...api]);
  t.is(refused.code, 2);
  t.regex(refused.err, /^r\.yaml:2:14: error: (?:.|\n)*rules with errors are not compared\n$/);
  const unknown = await runInProcess(['diff', side(first), 'server:0123456789', ...api]);
  t.is(unknown.code, 2);
  t.regex(
    unknown.err,
    /^error: the store has no revision 0123456789, or no longer has it \(HTTP 404\)\n$/,
  );
  const short = await runInProcess(['diff', side(first), 'server:012', ...api]);
  t.regex(short.err, /^error: 'server:012': It has 3 of the at least 6 characters/);
  const idle = await runInProcess(['diff', 'a', 'b', ...api]);
  t.is(idle.code, 2);
  t.regex(idle.err, /^error: --admin-url needs a side that is server:REVISION\n/);
});
