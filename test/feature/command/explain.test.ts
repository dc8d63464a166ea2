// The explain command: what a person asks when a request was refused, or was not.
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { startAdminApi } from '../../support/admin-api.ts';
import { type CommandRun, runInProcess } from '../../support/command-run.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';

const shop = `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 100, name: each}
  - key: user
    value: a*
    share_threshold: true
    rate_limit: {unit: minute, requests_per_unit: 10}
  - key: vip
    rate_limit: {unlimited: true, replaces: [{name: each}]}
  - key: closed
    shadow_mode: true
    rate_limit: {unit: day, requests_per_unit: 0}
`;

/** 2026-11-21T12:34:56Z */
const clock = { ...systemClock, wallMs: () => 1_795_264_496_000 };

function explain(t: ExecutionContext, ...args: string[]): Promise<CommandRun> {
  const folder = createRulesFolder(t);
  folder.write('shop.yaml', shop);
  return runInProcess(['explain', join(folder.path, 'shop.yaml'), ...args], { clock });
}

/** With the folder left out of the places. */
function plain(text: string): string {
  return text.replaceAll(/\/\S+\/(?=shop\.yaml)/g, '');
}

test('the rule that matches is shown with its limit and both keys, and why the others do not', async (t) => {
  const { code, out } = await explain(t, '--domain', 'shop', '--descriptor', 'user=ada');
  t.is(code, 0);
  t.is(
    plain(out),
    `descriptor of domain shop: user=ada
  entry 1: user=ada
    > wildcard  user_a*  (shop.yaml:5:5): the first wildcard that fits
      any value user  (shop.yaml:3:5): for every value, but the wildcard comes first
      and 2 rules for other keys and values
  result: the limit of 'user_a*' applies
  rule: shop.yaml:5:5 (descriptors[1])
  limit: 10 per minute
  cache key: shop_user_a*_1795264440
  metric key: shop.user_a
  window: 2026-11-21T12:34:00Z to 2026-11-21T12:35:00Z
`,
  );
});

test('a rule that another descriptor replaces does not apply', async (t) => {
  const { code, out } = await explain(
    t,
    '--domain',
    'shop',
    '--descriptor',
    'user=bob',
    '--descriptor',
    'vip=yes',
  );
  t.is(code, 0);
  t.is(
    plain(out),
    `descriptor 1 of domain shop: user=bob
  entry 1: user=bob
    > any value user  (shop.yaml:3:5): for every value that no exact rule or wildcard takes
      no match  user_a*  (shop.yaml:5:5): the value does not fit the pattern
      and 2 rules for other keys and values
  result: the limit of 'user' applies
  rule: shop.yaml:3:5 (descriptors[0])
  limit: 100 per hour, named each
  replaced by the rule of descriptor 2: it does not apply, nothing is counted

descriptor 2 of domain shop: vip=yes
  entry 1: vip=yes
    > any value vip  (shop.yaml:9:5): for every value that no exact rule or wildcard takes
      and 3 rules for other keys and values
  result: the limit of 'vip' applies
  rule: shop.yaml:9:5 (descriptors[2])
  limit: unlimited
  replaces, in the same request: each
  answered without counting: no cache key, no statistics
`,
  );
});

test('shadow mode and a limit of 0 are said', async (t) => {
  const { out } = await explain(t, '--domain', 'shop', '--descriptor', 'closed=');
  t.true(out.includes('  limit: 0 per day, which rejects every request\n'));
  t.true(out.includes('  shadow mode: counted, but never over the limit\n'));
  t.true(out.includes('  cache key: shop_closed__1795219200\n'));
});

test('a request that no rule matches is explained, with the nearest key', async (t) => {
  const { code, out } = await explain(t, '--domain', 'shop', '--descriptor', 'usr=ada');
  t.is(code, 0);
  t.true(out.includes("      no rule here has the key 'usr'; did you mean 'user'?\n"));
  t.true(
    plain(out).endsWith(`  result: no limit applies: no rule is for entry 1, usr=ada
  why: no rule has the key 'usr'
  hint: did you mean 'user'?
  nearest rule: shop.yaml:3:5
`),
  );
});

test('an unknown domain leads to the known ones, and exit code 1', async (t) => {
  const { code, out, err } = await explain(t, '--domain', 'shpo', '--descriptor', 'user=ada');
  t.is(code, 1);
  t.is(out, '');
  t.is(err, "error: no rules for domain 'shpo'; did you mean 'shop'?\ndomains: shop\n");
  const json = await explain(t, '--domain', 'shpo', '--descriptor', 'user=ada', '--json');
  t.is(json.code, 1);
  t.deepEqual(JSON.parse(json.out), {
    domain: 'shpo',
    error: 'unknown domain',
    nearest: 'shop',
    domains: ['shop'],
  });
});

test('rules with errors are not explained', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('a.yaml', 'domain: a\ndescripters: []\n');
  const args = ['explain', folder.path, '--domain', 'a', '--descriptor', 'k=v'];
  const { code, out, err } = await runInProcess(args);
  t.is(code, 1);
  t.is(out, '');
  t.regex(
    err,
    /a\.yaml:2:1: error: unknown key 'descripters'\n.*error: rules with errors match nothing\n$/s,
  );
});

test('the JSON has the levels, the rule and the keys', async (t) => {
  const { code, out } = await explain(
    t,
    '--domain',
    'shop',
    '--descriptor',
    'user=a=b',
    '--descriptor',
    'user=bob,plan=free',
    '--json',
  );
  t.is(code, 0);
  const json = JSON.parse(plain(out));
  t.deepEqual(json.descriptors[0], {
    entries: [{ key: 'user', value: 'a=b' }],
    levels: [
      {
        entry: { key: 'user', value: 'a=b' },
        candidates: [
          {
            composite: 'user_a*',
            file: 'shop.yaml',
            line: 5,
            column: 5,
            path: 'descriptors[1]',
            kind: 'wildcard',
            chosen: true,
            reason: 'the first wildcard that fits',
          },
          {
            composite: 'user',
            file: 'shop.yaml',
            line: 3,
            column: 5,
            path: 'descriptors[0]',
            kind: 'key_only',
            chosen: false,
            reason: 'for every value, but the wildcard comes first',
          },
        ],
        otherRules: 2,
        nearestKey: null,
      },
    ],
    verdict: "the limit of 'user_a*' applies",
    match: {
      rule: {
        composite: 'user_a*',
        file: 'shop.yaml',
        line: 5,
        column: 5,
        path: 'descriptors[1]',
      },
      limit: {
        requestsPerUnit: 10,
        text: '10 per minute',
        unit: 'minute',
        unlimited: false,
        name: null,
        replaces: [],
        shadowMode: false,
        quotaMode: false,
      },
      replacedBy: [],
      cacheKey: 'shop_user_a*_1795264440',
      metricKey: 'shop.user_a',
      window: { start: 1795264440, end: 1795264500 },
    },
    until: null,
    noMatch: null,
  });
  t.is(json.descriptors[1].match, null);
  t.regex(json.descriptors[1].verdict, /its own limit is for requests with 1 entry$/);
});

test('what a terminal would act on is shown as its code', async (t) => {
  const { out } = await explain(t, '--domain', 'shop', '--descriptor', 'user=a\u001b[2J');
  t.false(out.includes('\u001b'));
  t.true(out.includes('user=a\\u{1b}[2J'));
});

test('a rule that ends is shown with its end, and not any more when it has ended', async (t) => {
  const folder = createRulesFolder(t);
  const lift =
    '  - {key: user, value: ada, until: 2026-11-21T13:16:56Z, rate_limit: {unlimited: true}}\n';
  const raised =
    '  - {key: vip, until: 2026-11-24T00:00:00Z, rate_limit: {unit: hour, requests_per_unit: 9}}\n';
  folder.write('shop.yaml', `${shop}${lift}${raised}`);
  const ask = (descriptor: string, afterMs = 0) =>
    runInProcess(
      ['explain', join(folder.path, 'shop.yaml'), '--domain', 'shop', '--descriptor', descriptor],
      { clock: { ...clock, wallMs: () => clock.wallMs() + afterMs } },
    );
  const { out } = await ask('user=ada');
  t.regex(
    out,
    /the limit of 'user_ada' applies\n {2}lifted until 13:16:56Z \(in 42 min\): after it as if this rule were not there\n/,
  );
  const vip = (await ask('vip=yes')).out;
  t.regex(vip, /\n {2}in force until 2026-11-24T00:00:00Z \(in 2 days\): after it /);
  t.regex(vip, /\n {2}limit: 9 per hour\n/);
  const after = await ask('user=ada', 42 * 60_000);
  t.regex(after.out, /the limit of 'user_a\*' applies\n {2}rule: /);
});

test('a request is explained by what is in force at a control plane, or by another revision of it', async (t) => {
  const { port, rules, store } = await startAdminApi(t, {
    files: { 'shop.yaml': shop },
    maxResponseBytes: 100_000,
    verifyWebhook: async () => ({ ok: false, reason: 'no webhook here' }) as const,
  });
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
  t.regex(two.err, /^error: server: stands alone: /);
  const idle = await ask('shop.yaml', ...api);
  t.is(idle.code, 2);
  t.regex(idle.err, /^error: --admin-url needs server: in place of PATH\n/);
});
