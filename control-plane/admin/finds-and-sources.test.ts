// `/finds` and `/sources`, over real sockets and a real directory.
import test, { type ExecutionContext } from 'ava';
import { startAdminApi } from '../../test/support/admin-api.ts';
import { eventually } from '../../test/support/eventually.ts';

const shop = (limit: number) => `domain: shop
descriptors:
  # Agreed with the shop.
  - key: customer
    rate_limit: { unit: hour, requests_per_unit: ${limit} }
    descriptors:
      - key: plan
        value: free
        rate_limit: { unit: day, requests_per_unit: 20 }
  - key: tenant
`;
const worker = (id: string, address: string) => ({
  node: { id, cluster: '', metadata: new Map() },
  instance: id,
  address,
  mode: 'sotw',
  sinceMs: 1,
  ...{ sent: undefined, acked: undefined, nacked: undefined },
  wantedVersion: () => undefined,
});

async function start(t: ExecutionContext, files: Readonly<Record<string, string>>) {
  const listed = [worker('edge-1', '10.0.0.1:1'), worker('edge-2', '10.0.0.2:1')];
  const { port, rules } = await startAdminApi(t, {
    files,
    workers: { list: () => listed as never },
  });
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`);
    return { status: answer.status, body: JSON.parse(await answer.text()) };
  };
  return { rules, ask };
}

test('rules, domains, workers and revisions are found by a part of their names, in any case', async (t) => {
  const { ask } = await start(t, { 'shop.yaml': shop(3), 'mail.yaml': 'domain: mail\n' });
  const find = async (text: string) => (await ask(`/finds?text=${encodeURIComponent(text)}`)).body;
  const { domains, rules, workers, revisions } = await find('SHOP');
  t.deepEqual(domains, ['shop']);
  t.is(rules.length, 3);
  t.deepEqual([workers, revisions], [[], []]);
  t.deepEqual((await find('free')).rules, [
    { domain: 'shop', rule: 'shop.customer.plan_free', limits: ['20 per day'], file: 'shop.yaml' },
  ]);
  t.deepEqual((await find('edge')).workers, ['edge-1', 'edge-2']);
  t.deepEqual((await find('10.0.0.2')).workers, ['edge-2'], 'by its address');
  const [{ id }] = (await ask('/revisions')).body.revisions;
  t.is((await find(id.slice(0, 7))).revisions[0].id, id);
  t.deepEqual((await find(id.slice(3, 9))).revisions, [], 'an id is found by its beginning');
  t.is((await ask('/finds?text=')).status, 400);
});

test('a value that nothing refuses is found by the rules that count each value', async (t) => {
  const { ask } = await start(t, {
    'd.yaml': `domain: d
descriptors:
  - { key: customer, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - { key: tenant }
  - { key: path, value: /x, rate_limit: { unit: hour, requests_per_unit: 5 } }
  - key: plan
    value: free
    descriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 6 } }]
  - key: each
    descriptors: [{ key: user, rate_limit: { unit: hour, requests_per_unit: 7 } }]
`,
  });
  t.deepEqual((await ask('/finds?text=Ada')).body.values, [
    { domain: 'd', entries: [{ key: 'customer', value: 'Ada' }], limits: ['5 per hour'] },
    {
      domain: 'd',
      entries: [
        { key: 'plan', value: 'free' },
        { key: 'user', value: 'Ada' },
      ],
      limits: ['6 per hour'],
    },
  ]);
});

test('a search finds at most six of each kind', async (t) => {
  const files = Array.from({ length: 9 }, (_, index) => [
    `d${index}.yaml`,
    `domain: d${index}\ndescriptors:\n  - key: d\n  - key: e\n`,
  ]);
  const { ask } = await start(t, Object.fromEntries(files));
  const { domains, rules } = (await ask('/finds?text=d')).body;
  t.deepEqual([domains.length, rules.length], [6, 6]);
});

test('a rule is shown as its author wrote it, with who changed it last, by its name or its metric key', async (t) => {
  const { ask, rules } = await start(t, { 'shop.yaml': shop(3) });
  const [first] = (await ask('/revisions')).body.revisions;
  rules.replace('shop.yaml', shop(2));
  await eventually('it is in force', async () => {
    return (await ask('/status')).body.inForce?.id !== first.id;
  });
  const { body } = await ask('/sources?rule=shop.customer');
  t.like(body, {
    domain: 'shop',
    rule: { rule: 'shop.customer', file: 'shop.yaml', line: 4, limits: ['2 per hour'] },
    trial: null,
  });
  t.is(
    body.yaml,
    [
      '# Agreed with the shop.',
      '- key: customer',
      '  rate_limit: { unit: hour, requests_per_unit: 2 }',
      '  descriptors:',
      '    - key: plan',
      '      value: free',
      '      rate_limit: { unit: day, requests_per_unit: 20 }',
    ].join('\n'),
  );
  t.like(body.changed, { texts: ['3 per hour -> 2 per hour'], later: 0 });
  t.is(body.changed.before.id, first.id);
  t.is((await ask('/sources?rule=shop.customer_ada')).body.rule.rule, 'shop.customer');
  t.is((await ask('/sources?rule=shop.tenant')).body.changed, null);
});

test('of two rules in the same place the one in force now is shown, and none that has ended', async (t) => {
  const timed = (until: string, limit: number) =>
    `  - { key: k, until: ${until}, rate_limit: { unit: hour, requests_per_unit: ${limit} } }\n`;
  const ahead = new Date(Date.now() + 3_600_000).toISOString();
  const text = `domain: shop
descriptors:
${timed(ahead, 9)}  - { key: k, rate_limit: { unit: hour, requests_per_unit: 1 } }
${timed('2020-01-01T00:00:00Z', 5).replace('key: k', 'key: old')}`;
  const { ask } = await start(t, { 'shop.yaml': text });
  t.deepEqual((await ask('/sources?rule=shop.k')).body.rule.limits, ['9 per hour']);
  t.is((await ask('/sources?rule=shop.old')).status, 404);
});

test('a rule that is not in force is 404, and before anything is in force it is 503', async (t) => {
  const { ask } = await start(t, { 'shop.yaml': shop(3) });
  t.like(await ask('/sources?rule=shop.nobody'), {
    status: 404,
    body: { detail: 'there is no rule shop.nobody in force' },
  });
  const empty = await start(t, { 'shop.yaml': 'domain: [' });
  t.like(await empty.ask('/sources?rule=shop.customer'), {
    status: 503,
    body: { detail: 'nothing is in force yet' },
  });
});
