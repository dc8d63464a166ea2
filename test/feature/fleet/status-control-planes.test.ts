// Tests `status` against real admin APIs: revisions that are not the newest, and no workers.
import test, { type ExecutionContext } from 'ava';
import { startAdminApi } from '../../support/admin-api.ts';
import { runInProcess } from '../../support/command-run.ts';

const rules = (requests: number) =>
  `domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: ${requests}}}]\n`;

async function startPlane(t: ExecutionContext, files: Readonly<Record<string, string>>) {
  return await startAdminApi(t, { files });
}

const status = (url: string, ...args: string[]) =>
  runInProcess(['status', '--admin-url', url, ...args]);

test('without workers status fails, unless none are required', async (t) => {
  const { url } = await startPlane(t, { 'a.yaml': rules(1) });
  const out = /^revision [0-9a-f]{12} is served, but no workers are connected\n$/;
  const some = await status(url);
  t.is(some.code, 3);
  t.regex(some.out, out);
  t.is((await status(url, '--wait', '--timeout', '0s')).code, 3);
  const none = await status(url, '--min-workers', '0');
  t.is(none.code, 0);
  t.regex(none.out, out);
  t.is((await status(url, '--min-workers', 'x')).code, 2);
});

test('the reported limits are those that workers get, whatever rules exist', async (t) => {
  const limits = async (groups: string) => {
    const files = { 'a.yaml': rules(1), 'node-groups.yaml': `groups:\n${groups}` };
    const { url } = await startPlane(t, files);
    const { out } = await status(url, '--min-workers', '0');
    const { inForce } = JSON.parse((await status(url, '--json')).out);
    return [inForce.domains, inForce.limits, inForce.fewer, out.split('\n').slice(1).join('')];
  };
  t.deepEqual(await limits('  - {name: all, domains: []}\n'), [
    ...[0, 0, [], 'no worker gets any limit'],
  ]);
  const canary = '  - {name: canary, match: {id: c-*}, domains: []}\n';
  t.deepEqual(await limits(`${canary}  - {name: rest, domains: [d]}\n`), [
    ...[1, 1, [{ group: 'canary', domains: 0, limits: 0 }]],
    "nodes of group 'canary' get 0 of 1 limit",
  ]);
});

test('a superseded revision is as good as the newest one', async (t) => {
  const { url, rules: folder, store } = await startPlane(t, { 'a.yaml': rules(1) });
  const { id: first } = await store.read();
  folder.replace('a.yaml', rules(2));
  const { id: second } = await store.read();
  const asked = ['--revision', first.slice(0, 10), '--min-workers', '0', '--wait'];
  t.like(await status(url, ...asked), {
    code: 0,
    out: `revision ${first.slice(0, 10)} was superseded by ${second.slice(0, 12)}, which is served, but no workers are connected\n`,
  });
});

test('a revision that the store does not have is reported at once', async (t) => {
  const { url } = await startPlane(t, { 'a.yaml': rules(1) });
  const run = await status(url, '--revision', 'abcdef012345', '--wait', '--timeout', '10m');
  t.like(run, { code: 2, out: '' });
  // A slow machine first reports that it waits for an answer.
  t.regex(run.err, /^error: no such revision: abcdef012345\n$/m);
});
