// Tests `/finds` and `/sources` over real sockets and a real directory; admin-server.txt has more tests of them.
import test, { type ExecutionContext } from 'ava';
import { startAdminApi } from '../../../test/support/admin-api.ts';

const shop = `domain: shop
descriptors:
  - key: customer
    descriptors: [{key: plan, value: free, rate_limit: {unit: day, requests_per_unit: 20}}]
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

const workers = [worker('edge-1', '10.0.0.1:1'), worker('edge-2', '10.0.0.2:1')];

async function start(t: ExecutionContext, files: Readonly<Record<string, string>>) {
  const { ask } = await startAdminApi(t, { files, workers: { list: () => workers as never } });
  return { ask: (path: string) => ask('GET', path) };
}

test('rules, domains, workers and revisions are found by a part of their names, in any letter case', async (t) => {
  const { ask } = await start(t, { 'shop.yaml': shop, 'mail.yaml': 'domain: mail\n' });
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

test('a search finds at most six of each kind', async (t) => {
  const files = Array.from({ length: 9 }, (_, index) => [
    `d${index}.yaml`,
    `domain: d${index}\ndescriptors:\n  - key: d\n  - key: e\n`,
  ]);
  const { ask } = await start(t, Object.fromEntries(files));
  const { domains, rules } = (await ask('/finds?text=d')).body;
  t.deepEqual([domains.length, rules.length], [6, 6]);
});

test('of two rules in the same position, the one in force now is shown, and never an ended one', async (t) => {
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
