// Tests `push` and `rollback` against a real admin API.
import test, { type ExecutionContext } from 'ava';
import { startAdminApi } from '../../support/admin-api.ts';
import { runInProcess } from '../../support/command-run.ts';
import { createRulesFolder, ruleText } from '../../support/rules-folder.ts';

async function startPlane(t: ExecutionContext) {
  const { url, store } = await startAdminApi(t, { files: { 'shop.yaml': ruleText('shop', 1) } });
  const mine = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 2) });
  const run = (...args: string[]) => runInProcess([...args, '--admin-url', url]);
  return { store, mine, run };
}

for (const name of ['push', 'rollback']) {
  test(`${name} --wait ends as status --wait does for the new revision`, async (t) => {
    const { store, mine, run } = await startPlane(t);
    const { id } = await store.read();
    if (name === 'rollback') await run('push', mine.path);
    const args = [name, name === 'push' ? mine.path : id, '--wait'];
    const done = await run(...args, '--min-workers', '0');
    t.is(done.code, 0, done.err);
    t.regex(
      done.out,
      /revision [0-9a-f]{40} was made\nrevision [0-9a-f]{12} is served, but no workers are connected\n$/,
    );
    const none = await run(...args, '--timeout', '0s', '--json');
    t.is(none.code, 3, none.err);
    t.like(JSON.parse(none.out), { author: 'local', status: { verdict: 'no_workers' } });
  });
}

for (const [option, value] of [
  ['--timeout', '60s'],
  ['--min-workers', '2'],
] as const) {
  test(`push and rollback refuse ${option} without --wait, and change nothing`, async (t) => {
    const { store, mine, run } = await startPlane(t);
    const { id } = await store.read();
    for (const args of [
      ['push', mine.path],
      ['rollback', id],
    ]) {
      t.like(await run(...args, option, value), {
        code: 2,
        out: '',
        err: `error: ${option} has no effect without --wait\n--help lists the arguments\n`,
      });
    }
    t.is((await store.read()).id, id);
  });
}

test('push lists the changes for requests before it makes them', async (t) => {
  const { store, mine, run } = await startPlane(t);
  const before = (await store.read()).id;
  const pushed = await run('push', mine.path);
  t.is(pushed.code, 0, pushed.err);
  t.regex(
    pushed.out,
    /^shop\.yaml: changed\ndomain shop\n {2}k=\(any\) .*\n {4}raised: 1 per year -> 2 per year\n\n1 change\nrevision [0-9a-f]+ was made\n$/,
  );
  t.not((await store.read()).id, before);
  t.is((await run('push', mine.path)).out, 'nothing had to be changed\n');
});

test('push --dry-run lists what would change, or why it cannot, and changes nothing', async (t) => {
  const { store, mine, run } = await startPlane(t);
  const { id } = await store.read();
  const dry = (...args: string[]) => run('push', mine.path, '--dry-run', ...args);
  const printed = await dry();
  t.is(printed.code, 0, printed.err);
  t.regex(printed.out, /raised: 1 per year -> 2 per year\n\n1 change\n$/);
  t.like(JSON.parse((await dry('--json')).out), {
    from: { id },
    files: [{ path: 'shop.yaml', change: 'changed' }],
    changes: [{ kind: 'raised', domain: 'shop' }],
  });
  const same = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 1) });
  t.is((await run('push', same.path, '--dry-run')).out, 'nothing would be changed\n');
  const stale = await dry('--expected-revision', 'abcdef012345');
  t.is(stale.code, 5, stale.err);
  mine.write('shop.yaml', 'domain: shop\n');
  const removing = await dry();
  t.regex(removing.err, /held back: domain 'shop' would lose 1 of 1 limits/);
  mine.write('shop.yaml', 'domain: [');
  const invalid = await dry();
  t.is(invalid.code, 1);
  t.regex(invalid.err, /shop\.yaml:1:\d+: error: not valid YAML/);
  t.is((await store.read()).id, id);
});
