// `push` and `rollback` against a real admin API.
import test, { type ExecutionContext } from 'ava';
import { startAdminApi } from '../support/admin-api.ts';
import { runInProcess } from '../support/command-run.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';

async function startPlane(t: ExecutionContext) {
  const { port, store } = await startAdminApi(t, {
    files: { 'shop.yaml': ruleText('shop', 1) },
    maxResponseBytes: 100_000,
    verifyWebhook: async () => ({ ok: false, reason: 'no webhook here' }) as const,
  });
  const mine = createRulesFolder(t);
  mine.write('shop.yaml', ruleText('shop', 2));
  const run = (...args: string[]) =>
    runInProcess([...args, '--admin-url', `http://127.0.0.1:${port}`]);
  return { store, mine, run };
}

for (const name of ['push', 'rollback']) {
  test(`${name} --wait ends as status --wait does for the revision that was made`, async (t) => {
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
