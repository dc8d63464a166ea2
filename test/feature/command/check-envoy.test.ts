// `check --envoy`: rules and an Envoy configuration held against each other.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { runInProcess } from '../../support/command-run.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';

const limit = 'rate_limit: {unit: hour, requests_per_unit: 1}';
const shop = `domain: shop
descriptors:
  - key: customer
    ${limit}
    descriptors:
      - {key: plan, ${limit}}
  - key: generic_key
    value: checkout
    ${limit}
`;

interface Parts {
  /** Of the virtual host, in YAML's flow style. */
  readonly host?: string;
  readonly routes?: string;
  readonly filter?: string;
  /** In the place of `route_config`. */
  readonly rds?: string;
}

const type = 'type.googleapis.com/envoy.extensions.filters';

function envoyOf({
  host = '',
  routes = '{match: {prefix: /}, route: {cluster: shop}}',
  filter = 'domain: shop',
  rds = '',
}: Parts): string {
  const own = `route_config:
      virtual_hosts:
        - name: shop
          domains: ["*"]
          routes: [${routes}]
          rate_limits: [${host}]`;
  return `static_resources:
  listeners:
  - filter_chains:
    - filters:
      - typed_config:
          "@type": ${type}.network.http_connection_manager.v3.HttpConnectionManager
          ${(rds || own).replaceAll('\n', '\n          ')}
          http_filters:
            - name: limit
              typed_config: {"@type": ${type}.http.ratelimit.v3.RateLimit, ${filter}}
`;
}

/** Each problem as its kind and message, without those that rules alone have. */
async function check(
  t: ExecutionContext,
  rules: string,
  envoys: readonly string[],
  ...flags: string[]
) {
  const folder = createRulesFolder(t);
  const rulesFolder = join(folder.path, 'rules');
  folder.write('rules/shop.yaml', rules);
  envoys.forEach((text, index) => void folder.write(`envoy-${index}.yaml`, text));
  const paths = envoys.flatMap((_, index) => ['--envoy', join(folder.path, `envoy-${index}.yaml`)]);
  const run = await runInProcess(['check', rulesFolder, ...paths, ...flags, '--json']);
  t.is(run.err, '');
  const { problems: all } = JSON.parse(run.out) as {
    problems: {
      rule: string;
      file: string;
      line: number;
      column: number;
      message: string;
      hint: string | null;
      severity: string;
    }[];
  };
  // The rules alone lead to it.
  const problems = all.filter(({ rule }) => rule !== 'meeting-counters');
  const clean = (text: string) => text.replaceAll(`${rulesFolder}/`, '');
  return {
    code: run.code,
    problems,
    kinds: problems.map(({ rule, severity }) => `${severity} ${rule}`),
    texts: problems.map(({ message, hint }) => clean(`${message}; ${hint}`)),
  };
}

const actions = (...list: string[]) => `{actions: [${list.join(', ')}]}`;
const customer = '{request_headers: {header_name: x, descriptor_key: customer}}';
const plan = '{requestHeaders: {header_name: y, descriptorKey: plan}}';
const checkout = '{generic_key: {descriptor_value: checkout}}';
const everything = [actions(customer), actions(customer, plan), actions(checkout)].join(', ');

test('where each side knows what the other one asks and takes, nothing is said', async (t) => {
  const { code, problems } = await check(t, shop, [envoyOf({ host: everything })], '--strict');
  t.deepEqual(problems, []);
  t.is(code, 0);
});

test('an action that no rule takes is told at its place, with the nearest rule', async (t) => {
  const host = `${everything}, ${actions(customer, '{generic_key: {descriptor_key: plans, descriptor_value: gold}}')}`;
  const { code, problems, texts } = await check(t, shop, [envoyOf({ host })]);
  t.is(code, 0);
  t.deepEqual(texts, [
    "no rule of domain 'shop' takes (customer)(plans=gold): rule shop.customer matches the first entry, but no rule below it has the key 'plans'; did you mean 'plan'? (shop.yaml:6:9)",
  ]);
  const [{ rule, severity, line, column } = {}] = problems;
  t.is(rule, 'envoy-no-rule');
  t.is(severity, 'warning');
  const yaml = envoyOf({ host }).split('\n')[(line ?? 0) - 1] ?? '';
  t.true(yaml.slice((column ?? 0) - 1).startsWith('{generic_key: {descriptor_key: plans'));
});

test('with --strict what passes unlimited is an error, and rules that nothing reaches are not', async (t) => {
  const host = actions('{remote_address: {}}');
  const { code, kinds } = await check(t, shop, [envoyOf({ host })], '--strict');
  t.is(code, 1);
  t.deepEqual(kinds, [
    'error envoy-no-rule',
    'warning envoy-unreached-rule',
    'warning envoy-unreached-rule',
  ]);
});

test('a rule that no action can come to is told once, with all that is below it', async (t) => {
  const { texts } = await check(t, shop, [envoyOf({ host: actions(checkout) })]);
  t.deepEqual(texts, [
    'no Envoy action can come to this rule, nor to those below it; add an action with its keys in this order, or remove the rule',
  ]);
  const other = await check(t, shop, [
    envoyOf({ host: [actions(checkout), actions(customer)].join(', ') }),
  ]);
  t.deepEqual(
    other.problems.map(({ line }) => line),
    [6],
  );
});

test('domains that only one side knows are told', async (t) => {
  const { kinds, texts } = await check(t, shop, [envoyOf({ filter: 'domain: shopp' })]);
  t.deepEqual(kinds, ['warning envoy-unknown-domain', 'warning envoy-unasked-domain']);
  t.deepEqual(texts, [
    "there are no rules for domain 'shopp', so nothing of it is limited; did you mean 'shop'?",
    "no Envoy configuration asks about domain 'shop'; it is named as 'domain' of a rate limit filter",
  ]);
});

test('a header that may be missing leaves its entry out, and one of the two descriptors is enough', async (t) => {
  const optional = (key: string) =>
    `{request_headers: {header_name: x, descriptor_key: ${key}, skip_if_absent: true}}`;
  const host = [
    actions(customer, optional('plan')),
    actions(checkout),
    actions(customer, optional('zone')),
  ];
  const { problems } = await check(t, shop, [envoyOf({ host: host.join(', ') })], '--strict');
  t.deepEqual(problems, []);
});

test('an action with a limit of its own needs no rule', async (t) => {
  const own =
    '{limit: {dynamic_metadata: {metadata_key: {key: k}}}, actions: [{remote_address: {}}]}';
  const { problems } = await check(
    t,
    shop,
    [envoyOf({ host: `${everything}, ${own}` })],
    '--strict',
  );
  t.deepEqual(problems, []);
});

test('actions that no filter or route sends are told', async (t) => {
  const host = `${everything}, {stage: 2, actions: [${checkout}]}`;
  t.deepEqual((await check(t, shop, [envoyOf({ host })])).texts, [
    'these actions are never sent: no rate limit filter has their stage; null',
  ]);
  const route = `{match: {prefix: /}, route: {cluster: c, rate_limits: [${everything}]}}`;
  const never =
    'these actions are never sent: every route has limits of its own, ignores these, or only answers; null';
  const withHost = (routes: string) =>
    check(t, shop, [envoyOf({ routes, host: actions(checkout) })]);
  t.deepEqual((await withHost(route)).texts, [never]);
  const including = route.replace('cluster: c,', 'cluster: c, include_vh_rate_limits: true,');
  t.deepEqual((await withHost(including)).texts, []);
  const answering = '{match: {prefix: /}, direct_response: {status: 200}}';
  t.true((await withHost(answering)).texts.includes(never));
});

test('what is set for one route counts: another domain, other limits, the cluster it goes to', async (t) => {
  const set = `{"@type": ${type}.http.ratelimit.v3.RateLimitPerRoute, domain: other, rate_limits: [${actions(checkout)}]}`;
  const routes = `{match: {prefix: /}, route: {cluster: c}, typed_per_filter_config: {limit: ${set}}}, {match: {prefix: /x}, route: {cluster: c, rate_limits: [${actions('{destination_cluster: {}}')}], include_vh_rate_limits: true}}`;
  const { texts } = await check(t, shop, [envoyOf({ routes, host: everything })]);
  t.deepEqual(texts, [
    "there are no rules for domain 'other', so nothing of it is limited; null",
    "no rule of domain 'shop' takes (destination_cluster=c): no rule has the key 'destination_cluster'; the keys there are 'customer', 'generic_key'",
  ]);
});

test('routes of another file are followed, and what comes from elsewhere is named', async (t) => {
  const rds = 'rds: {route_config_name: main, config_source: {ads: {}}}';
  const alone = await check(t, shop, [envoyOf({ rds })]);
  t.deepEqual(alone.kinds, ['warning envoy-not-checked']);
  t.regex(alone.texts[0] ?? '', /^not checked: the routes 'main' come over RDS/);
  const routes = `resources:
  - "@type": type.googleapis.com/envoy.config.route.v3.RouteConfiguration
    name: main
    virtual_hosts:
      - {name: shop, domains: ["*"], routes: [{match: {prefix: /}, route: {cluster: c}}], rate_limits: [${everything}]}
`;
  t.deepEqual((await check(t, shop, [envoyOf({ rds }), routes])).problems, []);
  t.deepEqual((await check(t, shop, [routes])).kinds, ['warning envoy-not-checked']);
  t.deepEqual((await check(t, shop, ['static_resources: {}\n'])).kinds, [
    'warning envoy-not-checked',
  ]);
  const unknown = await check(t, shop, [envoyOf({ host: actions('{brand_new: {}}') })]);
  t.deepEqual(unknown.kinds, ['warning envoy-not-checked']);
});

test('a network filter asks as well', async (t) => {
  const filter = `listeners: [{filter_chains: [{filters: [{typed_config: {"@type": ${type}.network.ratelimit.v3.RateLimit, domain: shop, descriptors: [{entries: [{key: customer, value: x}, {key: plan, value: y}]}, {entries: [{key: custmer, value: x}]}]}}]}]}]`;
  const { texts } = await check(t, shop, [`static_resources: {${filter}}\n`]);
  t.true(texts[0]?.startsWith("no rule of domain 'shop' takes (custmer=x): "), texts.join('\n'));
  t.is(texts.length, 3, 'and two rules that nothing comes to');
});

test('a file that is no YAML is told with its place, and rules with errors are told alone', async (t) => {
  const bad = await check(t, shop, ['static_resources: {listeners: [\n']);
  t.is(bad.code, 1);
  t.deepEqual(bad.kinds, ['error yaml-syntax']);
  const rules = await check(t, 'domain: shop\ndescriptors: 5\n', [
    envoyOf({ filter: 'domain: x' }),
  ]);
  t.is(rules.code, 1);
  t.is(rules.problems.length, 1);
});

test('hostile files are bounded in time and in what is said', async (t) => {
  const many = Array.from({ length: 12_000 }, (_, index) =>
    actions(`{generic_key: {descriptor_value: v${index}}}`),
  );
  const { problems } = await check(t, shop, [envoyOf({ host: many.join(', ') })]);
  t.true(problems.length <= 102);
  const deep = `static_resources: ${'['.repeat(5_000)}${']'.repeat(5_000)}\n`;
  t.deepEqual((await check(t, shop, [deep])).kinds, ['error too-large']);
});

test('wrong usage is told', async (t) => {
  const folder = createRulesFolder(t);
  folder.write('shop.yaml', shop);
  const run = (...args: string[]) => runInProcess(['check', ...args]);
  const missing = await run(folder.path, '--envoy', '/does/not/exist');
  t.is(missing.code, 2);
  t.regex(missing.err, /^error: --envoy '\/does\/not\/exist' cannot be read: it does not exist/);
  t.is((await run('-config_dir', folder.path, '--envoy', folder.path)).code, 2);
});

test('the sample configuration asks about the sample rules', async (t) => {
  const compose = join(import.meta.dirname, '..', '..', '..', 'compose');
  const rules = await readFile(join(compose, 'rules', 'shop.yaml'), 'utf8');
  const envoy = await readFile(join(compose, 'envoy', 'envoy.yaml'), 'utf8');
  const { code, kinds } = await check(t, rules, [envoy]);
  t.is(code, 0);
  t.deepEqual([...new Set(kinds)], ['warning envoy-unreached-rule']);
});

test('requests that cost more than a limit ever admits are noted', async (t) => {
  const rules = `domain: shop
descriptors:
  - {key: generic_key, value: dear, rate_limit: {unit: hour, requests_per_unit: 5}}
  - {key: generic_key, value: burst, rate_limit: {unit: hour, requests_per_unit: 5, algorithm: token_bucket, burst: 9}}
`;
  const costs = (value: string, number: number) =>
    `{actions: [{generic_key: {descriptor_value: ${value}}}], hits_addend: {number: ${number}}}`;
  const host = [costs('dear', 6), costs('dear', 5), costs('burst', 9), costs('burst', 10)].join(
    ', ',
  );
  const { kinds, texts } = await check(t, rules, [envoyOf({ host })]);
  const costing = kinds.flatMap((kind, index) =>
    kind === 'note envoy-cost' ? [texts[index]] : [],
  );
  t.is(costing.length, 2, kinds.join());
  t.regex(
    costing[0] ?? '',
    /has 6 hits, and the rule at shop\.yaml:3:\d+ admits at most 5 at once/,
  );
  t.regex(costing[1] ?? '', /has 10 hits, .* admits at most 9 at once/);
});
