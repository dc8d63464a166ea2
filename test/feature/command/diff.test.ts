// The diff command: what changes for requests, whatever changes in the files.
import test, { type ExecutionContext } from 'ava';
import { startAdminApi } from '../../support/admin-api.ts';
import { runInProcess } from '../../support/command-run.ts';
import { createRulesFolder } from '../../support/rules-folder.ts';

function document(...descriptors: string[]): string {
  return ['domain: shop', 'descriptors:', ...descriptors.map((each) => `  - ${each}`), ''].join(
    '\n',
  );
}

async function diff(
  t: ExecutionContext,
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
  ...flags: string[]
) {
  const folder = createRulesFolder(t);
  for (const [side, files] of Object.entries({ before, after })) {
    for (const [name, text] of Object.entries(files)) folder.write(`${side}/${name}`, text);
  }
  const run = await runInProcess([
    'diff',
    `${folder.path}/before`,
    `${folder.path}/after`,
    ...flags,
  ]);
  return { ...run, out: run.out.replaceAll(`${folder.path}/`, '') };
}

/** `kind: requests: text` of each change between two documents. */
async function changesOf(t: ExecutionContext, before: string, after: string): Promise<string[]> {
  const { code, out, err } = await diff(t, { 'r.yaml': before }, { 'r.yaml': after }, '--json');
  t.is(err, '');
  const json = JSON.parse(out) as {
    same: boolean;
    changes: {
      kind: string;
      requests: { key: string; value: string | null }[];
      text: string;
    }[];
  };
  t.is(json.same, code === 0);
  t.is(json.changes.length > 0, code === 1);
  return json.changes.map(({ kind, requests, text }) => {
    const shown = requests.map(({ key, value }) => `${key}=${value ?? ''}`).join(',');
    return `${kind}: ${shown}: ${text}`;
  });
}

const rule = (more: string) => document(`{key: k, ${more}}`);
const limited = (limit: string, more = '') => rule(`${more}rate_limit: {${limit}}`);
const perHour = (number: number) => limited(`unit: hour, requests_per_unit: ${number}`);

const steps: readonly [what: string, before: string, after: string, change: string][] = [
  ['a higher limit', perHour(5), perHour(6), 'raised: k=: 5 per hour -> 6 per hour'],
  ['a lower limit', perHour(6), perHour(5), 'lowered: k=: 6 per hour -> 5 per hour'],
  [
    'a lower rate in a longer window',
    limited('unit: second, requests_per_unit: 10'),
    limited('unit: minute, requests_per_unit: 100'),
    'lowered: k=: 10 per second (600 per minute) -> 100 per minute',
  ],
  [
    'a higher rate in a shorter window',
    limited('unit: year, requests_per_unit: 1'),
    limited('unit: week, requests_per_unit: 1'),
    'raised: k=: 1 per year -> 1 per week (52.14 per year)',
  ],
  [
    'the same rate in another window',
    limited('unit: second, requests_per_unit: 1'),
    limited('unit: hour, requests_per_unit: 3600'),
    'window_changed: k=: 1 per second (3,600 per hour) -> 3,600 per hour',
  ],
  ['a limit of 0', perHour(5), perHour(0), 'blocked: k=: 5 per hour -> 0 per hour, all blocked'],
  [
    'no limit of 0 any more',
    perHour(0),
    perHour(5),
    'unblocked: k=: 0 per hour, all blocked -> 5 per hour',
  ],
  ['unlimited', perHour(5), limited('unlimited: true'), 'unlimited: k=: 5 per hour -> unlimited'],
  [
    'not unlimited any more',
    limited('unlimited: true'),
    perHour(5),
    'no_longer_unlimited: k=: unlimited -> 5 per hour',
  ],
  [
    'blocked after unlimited',
    limited('unlimited: true'),
    perHour(0),
    'blocked: k=: unlimited -> 0 per hour, all blocked',
  ],
  [
    'shadow mode',
    perHour(5),
    limited('unit: hour, requests_per_unit: 5', 'shadow_mode: true, '),
    'shadow_mode_on: k=: off -> on',
  ],
  [
    'no quota mode',
    limited('unit: hour, requests_per_unit: 5', 'quota_mode: true, '),
    perHour(5),
    'quota_mode_off: k=: on -> off',
  ],
  [
    'a name',
    perHour(5),
    limited('unit: hour, requests_per_unit: 5, name: n'),
    'name_changed: k=: none -> n',
  ],
  [
    'what is replaced',
    limited('unit: hour, requests_per_unit: 5, replaces: [{name: b}, {name: a}]'),
    limited('unit: hour, requests_per_unit: 5, replaces: [{name: b}]'),
    'replaces_changed: k=: a, b -> b',
  ],
  [
    'the statistics',
    perHour(5),
    limited('unit: hour, requests_per_unit: 5', 'detailed_metric: true, '),
    'metric_changed: k=: shop.k -> shop.k_<value>',
  ],
  [
    'metadata',
    perHour(5),
    limited('unit: hour, requests_per_unit: 5', 'metadata: {tier: gold}, '),
    'metadata_changed: k=: none -> {"tier":"gold"}',
  ],
];

for (const [what, before, after, change] of steps) {
  test(`${what} is told as one change`, async (t) => {
    t.deepEqual(await changesOf(t, before, after), [change]);
  });
}

test('sharing is told with the pattern', async (t) => {
  const alone = document('{key: k, value: "a*", rate_limit: {unit: hour, requests_per_unit: 5}}');
  const shared = alone.replace('value:', 'share_threshold: true, value:');
  t.deepEqual(await changesOf(t, alone, shared), [
    'sharing_changed: k=a*: none -> a*',
    'metric_changed: k=a*: shop.k_a* -> shop.k_a',
  ]);
});

test('comments, the order of rules and files, and other spellings change nothing', async (t) => {
  const one = '{key: a, rate_limit: {unit: hour, requests_per_unit: 5}}';
  const two = '{key: b, metadata: {x: 1, y: 2}, rate_limit: {unit: day, requests_per_unit: 16}}';
  const otherTwo =
    '{rate_limit: {requests_per_unit: 0x10, unit: DAY}, metadata: {y: 2, x: 1}, key: b}';
  const mail = document(one).replace('shop', 'mail');
  const { code, out } = await diff(
    t,
    { 'a.yaml': document(one, two), 'b.yaml': mail },
    { 'x/b.yaml': `# comment\n${document(otherTwo, one)}`, 'a.yaml': mail },
  );
  t.is(out, 'nothing changes for requests\n');
  t.is(code, 0);
});

test('a new rule is compared with the one that its requests matched before', async (t) => {
  const each = '{key: user, rate_limit: {unit: hour, requests_per_unit: 100}}';
  const ada = '{key: user, value: ada, rate_limit: {unit: hour, requests_per_unit: 5}}';
  const [before, after] = [document(each), document(each, ada)];
  t.deepEqual(await changesOf(t, before, after), [
    'lowered: user=ada: 100 per hour -> 5 per hour',
    'metric_changed: user=ada: shop.user -> shop.user_ada',
  ]);
  t.deepEqual(await changesOf(t, after, before), [
    'raised: user=ada: 5 per hour -> 100 per hour',
    'metric_changed: user=ada: shop.user_ada -> shop.user',
  ]);
});

test('a wildcard that takes the place of another is a change, wherever it stands', async (t) => {
  const wide = '{key: p, value: "/a*", rate_limit: {unit: hour, requests_per_unit: 100}}';
  const narrow = '{key: p, value: "/ab*", rate_limit: {unit: hour, requests_per_unit: 5}}';
  t.deepEqual(await changesOf(t, document(wide, narrow), document(narrow, wide)), [
    'lowered: p=/ab*: 100 per hour -> 5 per hour',
    'metric_changed: p=/ab*: shop.p_/a* -> shop.p_/ab*',
  ]);
  // Behind the wide one, the narrow one never had an effect.
  t.deepEqual(await changesOf(t, document(wide, narrow), document(wide)), []);
});

test('a rule without a limit that exempts requests is a change', async (t) => {
  const each = '{key: user, rate_limit: {unit: hour, requests_per_unit: 100}}';
  const after = document(each, '{key: user, value: ada}');
  t.deepEqual(await changesOf(t, document(each), after), [
    'limit_removed: user=ada: 100 per hour -> no limit',
  ]);
});

test('limits below other rules are told with all entries', async (t) => {
  const nested = (number: number) =>
    document(
      `{key: plan, value: free, descriptors: [{key: path, rate_limit: {unit: hour, requests_per_unit: ${number}}}]}`,
    );
  t.deepEqual(await changesOf(t, nested(5), nested(6)), [
    'raised: plan=free,path=: 5 per hour -> 6 per hour',
  ]);
});

test('a person sees domains, requests, places and changes', async (t) => {
  const { code, out } = await diff(
    t,
    { 'a.yaml': perHour(5), 'mail.yaml': 'domain: mail\ndescriptors: []\n' },
    {
      'a.yaml': document(
        '{key: k, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 7}}',
        '{key: n, value: v, descriptors: [{key: o, rate_limit: {unit: day, requests_per_unit: 0}}]}',
      ),
      'new.yaml': perHour(1).replace('shop', 'new'),
    },
  );
  t.is(code, 1);
  t.is(
    out,
    `domain mail
  domain removed
domain new
  domain added
  k=(any)  (no rule -> after/new.yaml:3:5)
    limit added: no limit -> 1 per hour
domain shop
  k=(any)  (before/a.yaml:3:5 -> after/a.yaml:3:5)
    raised: 5 per hour -> 7 per hour, in shadow mode
    shadow mode on: off -> on
  n=v, o=(any)  (no rule -> after/a.yaml:4:38)
    blocked: no limit -> 0 per day, all blocked

6 changes
`,
  );
});

test('rules with errors are not compared, and end with exit code 2', async (t) => {
  const { code, out, err } = await diff(
    t,
    { 'a.yaml': perHour(5) },
    { 'a.yaml': 'domain: a\ndescripters: []\n' },
  );
  t.is(code, 2);
  t.is(out, '');
  t.regex(
    err,
    /a\.yaml:2:1: error: unknown key 'descripters'\n.*error: rules with errors are not compared\n$/s,
  );
});

test('two revisions of a control plane are compared like files', async (t) => {
  const files = { 'r.yaml': perHour(5) };
  const { port, rules, store } = await startAdminApi(t, {
    files,
    maxResponseBytes: 100_000,
    verifyWebhook: async () => ({ ok: false, reason: 'no webhook here' }) as const,
  });
  const first = (await store.read()).id;
  rules.write('r.yaml', perHour(6));
  const second = (await store.read()).id;
  rules.write('r.yaml', 'domain: shop\ndescriptors: 5\n');
  const wrong = (await store.read()).id;
  const api = ['--admin-url', `http://127.0.0.1:${port}`];
  const side = (id: string) => `server:${id.slice(0, 12)}`;
  const ofFiles = await diff(t, files, { 'r.yaml': perHour(6) }, '--json');
  const json = ofFiles.out.replaceAll(/(?:before|after)\//g, '');
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
    /^error: the store has no revision 0123456789, or not any more \(HTTP 404\)\n$/,
  );
  const short = await runInProcess(['diff', side(first), 'server:012', ...api]);
  t.regex(short.err, /^error: 'server:012': It has 3 of the at least 6 characters/);
  const idle = await runInProcess(['diff', 'a', 'b', ...api]);
  t.is(idle.code, 2);
  t.regex(idle.err, /^error: --admin-url needs a side that is server:REVISION\n/);
});
