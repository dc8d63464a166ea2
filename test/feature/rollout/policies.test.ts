// Tests a policy beside the rules, from a change to its effect in a control plane: over the API, and from commits.
import test, { type ExecutionContext } from 'ava';
import { startAdminApi } from '../../support/admin-api.ts';
import { runInProcess } from '../../support/command-run.ts';
import { eventually } from '../../support/eventually.ts';
import { createGitRepository } from '../../support/git-repository.ts';
import { openGitStore } from '../../support/git-store.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';

const rules = (limit: number, domain = 'shop') =>
  `domain: ${domain}\ndescriptors:\n  - {key: a, rate_limit: {unit: minute, requests_per_unit: ${limit}}}\n`;
const policy = `policies:
  - domains: shop
    owners: [ada]
    bounds: [{unit: minute, most: 20}]
    largest_factor: 3
`;
const tokens = 'ada write ada-aaaaaaaaaaaaaaaa\nbob write bob-bbbbbbbbbbbbbbbb\n';

interface Problem {
  readonly severity: string;
  readonly message: string;
}

async function call(
  port: number,
  who: 'ada' | 'bob',
  method: string,
  path: string,
  body?: unknown,
) {
  const token = who === 'ada' ? 'ada-aaaaaaaaaaaaaaaa' : 'bob-bbbbbbbbbbbbbbbb';
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const { problems = [] } = (await answer.json()) as { problems?: readonly Problem[] };
  return { status: answer.status, messages: problems.map(({ message }) => message) };
}

function startApi(t: ExecutionContext, limit: number) {
  const files = { 'shop.yaml': rules(limit), 'policy.yaml': policy };
  return startAdminApi(t, { files, tokens });
}

const replace = (text: string, message?: string) => ({
  files: [
    { path: 'shop.yaml', text },
    { path: 'policy.yaml', text: policy },
  ],
  ...(message !== undefined && { message }),
});

test('over the API a change that violates the policy is refused before it is written, unless its message has the reason', async (t) => {
  const { port } = await startApi(t, 10);
  const post = (who: 'ada' | 'bob', text: string, message?: string) =>
    call(port, who, 'POST', '/revisions', replace(text, message));
  t.deepEqual(await post('bob', rules(11)), {
    status: 422,
    messages: ["domain 'shop' is changed by bob, and only ada may change it"],
  });
  t.deepEqual(await post('ada', rules(40)), {
    status: 422,
    messages: [
      'the limit is 40 for one minute, and the policy allows at most 20',
      'the limit is raised 4 times, and the policy allows 3 times at once',
    ],
  });
  t.deepEqual((await post('ada', rules(20))).status, 201);
  const { path } = createRulesFolder(t, { 'shop.yaml': rules(90), 'policy.yaml': policy });
  const push = ['push', path, '--admin-url', `http://127.0.0.1:${port}`, '--message'];
  const environment = { RATELANE_ADMIN_TOKEN: 'ada-aaaaaaaaaaaaaaaa' };
  const pushed = await runInProcess([...push, 'x\n\nPolicy-Exception: sale'], { environment });
  t.is(pushed.code, 0, pushed.err);
});

test('a refused rollback leaves the revision on trial on its workers, and is logged as refused', async (t) => {
  const files = { 'shop.yaml': rules(10), 'policy.yaml': policy };
  const {
    port,
    store,
    rules: folder,
    snapshots,
    log,
  } = await startAdminApi(t, { ...{ files, tokens, steps: 'canary=10%,hold=60s' } });
  const first = (await store.read()).id;
  const push = (limit: number, more = {}) =>
    call(port, 'ada', 'POST', '/revisions', {
      files: [
        { path: 'shop.yaml', text: rules(limit) },
        { path: 'policy.yaml', text: `owners: ada\n${policy}` },
      ],
      ...more,
    });
  t.is((await push(20, { rollout: 'now', message: 'not by steps' })).status, 201);
  t.is((await push(15)).status, 201);
  const onTrial = () => snapshots.state().trial?.revision.id;
  await eventually('it is on trial', () => onTrial() !== undefined);
  const trial = onTrial();
  const rollBack = (who: 'ada' | 'bob') =>
    call(port, who, 'POST', '/rollbacks', { revision: first });
  t.is((await rollBack('bob')).status, 422);
  t.is(onTrial(), trial, 'the policy is another one');
  folder.relink('shop.yaml', 'elsewhere.yml.txt');
  t.is((await rollBack('ada')).status, 422);
  t.is(onTrial(), trial, 'a link is not written through');
  t.false(
    log.lines.some((line) => /no longer on trial/.test(line)),
    log.lines.join('\n'),
  );
});

test('only its owners can change the policy', async (t) => {
  const { port } = await startApi(t, 10);
  const post = (who: 'ada' | 'bob', text: string) =>
    call(port, who, 'POST', '/revisions', {
      files: [
        { path: 'shop.yaml', text: rules(10) },
        { path: 'policy.yaml', text },
      ],
    });
  t.is((await post('bob', `owners: ada\n${policy}`)).status, 201);
  t.deepEqual(await post('bob', policy), {
    status: 422,
    messages: ['the policy is changed by bob, and only ada may change it'],
  });
  t.is((await post('ada', policy)).status, 201);
});

test('a commit that violates the policy is not served, and one with a reason is', async (t) => {
  const repository = createGitRepository(t);
  const owned = policy.replace('[ada]', '["*"]');
  repository.push({ 'shop.yaml': rules(10), 'policy.yaml': owned });
  const { store } = openGitStore(t, repository);
  const { log } = await startAdminApi(t, { files: {}, store });
  repository.push({ 'shop.yaml': rules(25) });
  await store.trigger();
  const logged = async (text: RegExp) => {
    await eventually(String(text), () => log.lines.some((line) => text.test(line)));
    t.pass();
  };
  await logged(/the limit is 25 for one minute, and the policy allows at most 20/);
  await logged(/stays in force/);
  repository.push({ 'shop.yaml': rules(26) }, 'Sale\n\nPolicy-Exception: agreed with ops');
  await store.trigger();
  await logged(/^notice audit: .*breaks the policy, by its own word: agreed with ops$/);
  await logged(/^warning Configuration: .*the limit is 26/);
});

test('check lists the limits that the policy beside them does not allow, and mistakes in the policy', async (t) => {
  const folder = createRulesFolder(t, { 'shop.yaml': rules(40), 'policy.yaml': policy });
  const logged = await runInProcess(['check', folder.path]);
  t.regex(logged.out, /shop\.yaml:3:5: warning: the limit is 40 for one minute, .* \[policy\]\n/);
  t.is(logged.code, 0);
  t.is((await runInProcess(['check', folder.path, '--strict'])).code, 1);
  folder.write('policy.yaml', policy.replace('owners', 'owner'));
  const wrong = await runInProcess(['check', folder.path]);
  t.regex(wrong.out, /policy\.yaml:3:5: error: unknown key 'owner'\n/);
  t.is(wrong.code, 1);
});
