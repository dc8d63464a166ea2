import test from 'ava';
import fc from 'fast-check';
import { HttpError } from '../../shared/router/index.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { buildRuleSet } from '../../shared/rules/rule-set.ts';
import { toFlowText } from '../../shared/rules/wire/rule-object.ts';
import { type LiftAsked, planLift } from './lift.ts';

const nowMs = Date.parse('2026-11-24T17:00:00Z');
const sixMs = Date.parse('2026-11-24T18:00:00Z');
const hourMs = 3_600_000;

interface Asked extends Partial<Omit<LiftAsked, 'entries'>> {
  readonly path?: string;
}

function toAsked(descriptor: string, asked: Asked = {}): LiftAsked {
  const entries = descriptor.split(' ').map((pair) => {
    const [key = '', value = ''] = pair.split('=');
    return { key, value };
  });
  return {
    domain: 'shop',
    entries,
    untilMs: sixMs,
    comment: 'lifted by ann: a demo',
    nowMs,
    ...asked,
  };
}

/** The text after the lift. */
function lift(text: string, descriptor: string, asked?: Asked): string {
  const file = { path: 'shop.yaml', text };
  return planLift([file], toAsked(descriptor, asked))[0]?.text ?? text;
}

function refusal(text: string, descriptor: string, asked?: Asked): string {
  try {
    return `no refusal: ${lift(text, descriptor, asked)}`;
  } catch (error) {
    if (error instanceof HttpError) return `${error.status} ${error.message}`;
    throw error;
  }
}

/** The limit of a descriptor, and whether it is lifted. */
function limitOf(text: string, descriptor: string, atMs = nowMs): string {
  const { document } = parseRuleDocument(text, 'shop.yaml');
  const options = { mergeDomains: false, sanitizeMetricDots: false };
  const built = buildRuleSet(document ? [document] : [], options, atMs);
  if (!built.ok) return 'invalid';
  const { entries } = toAsked(descriptor);
  const match = built.ruleSet.domains.get('shop')?.match(entries);
  if (match === undefined) return 'none';
  return match.limit.unlimited ? 'lifted' : `${match.limit.requestsPerUnit}`;
}

const flat = `# The shop's limits.
domain: shop
descriptors:
  # Everybody.
  - key: user   # by login
    rate_limit: {unit: hour, requests_per_unit: 10}

  - {key: path, value: "/a b", rate_limit: {unit: day, requests_per_unit: 5}}
`;

test('a lift is one line above the rules of its list, and all else stays as it was', (t) => {
  const text = lift(flat, 'user=ada');
  t.is(
    text,
    flat.replace(
      'descriptors:\n',
      'descriptors:\n  - {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}  # lifted by ann: a demo\n',
    ),
  );
  t.deepEqual(
    ['user=ada', 'user=bob'].map((user) => limitOf(text, user)),
    ['lifted', '10'],
  );
  t.is(limitOf(text, 'user=ada', sixMs), '10');
});

test('a second lift moves the end, and its end takes it out again', (t) => {
  const once = lift(flat, 'user=ada');
  const twice = lift(once, 'user=ada', { untilMs: sixMs + hourMs, comment: 'lifted by bob: more' });
  t.is(twice, once.replace('T18', 'T19').replace('ann: a demo', 'bob: more'));
  t.is(lift(twice, 'user=ada', { untilMs: sixMs }), once);
  t.is(lift(twice, 'user=ada', { untilMs: undefined }), flat);
  t.is(lift(lift(twice, 'user=bob'), 'user=ada', { untilMs: undefined }), lift(flat, 'user=bob'));
});

test('a rule that has ended is taken out when the file is written, with all its lines', (t) => {
  const ended = `${flat}  - key: user
    value: eve
    until: 2026-11-24T16:00:00Z
    # A comment within.
    rate_limit:
      unit: hour
      requests_per_unit: 99
  # On the next one.
  - {key: plan, rate_limit: {unit: hour, requests_per_unit: 7}}
`;
  const text = lift(ended, 'user=ada');
  t.false(text.includes('eve'));
  t.is(
    text,
    lift(
      `${flat}  # On the next one.\n  - {key: plan, rate_limit: {unit: hour, requests_per_unit: 7}}\n`,
      'user=ada',
    ),
  );
  t.is(
    lift(lift(flat, 'user=ada'), 'user=bob', { nowMs: sixMs, untilMs: sixMs + 1 }),
    lift(flat, 'user=bob', { untilMs: sixMs + 1 }),
  );
});

test('a rule for exactly this value is lifted by one beside it', (t) => {
  const own = `${flat}  - {key: user, value: ada, rate_limit: {unit: hour, requests_per_unit: 50}}\n`;
  const text = lift(own, 'user=ada');
  t.is(limitOf(text, 'user=ada'), 'lifted');
  t.is(limitOf(text, 'user=ada', sixMs), '50');
});

const nested = `domain: shop
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 10, name: each}
    descriptors:
      - {key: path, rate_limit: {unit: hour, requests_per_unit: 3}}
      - {key: path, value: /pay, shadow_mode: true, rate_limits: [{unit: second, requests_per_unit: 5}, {unit: minute, requests_per_unit: 60, algorithm: sliding_window}]}
`;
/** All that can be asked of it. */
const asked = ['user=ada', 'user=ada path=/', 'user=ada path=/pay', 'user=bob', 'user=bob path=/'];
const limitsOf = (text: string, atMs?: number) =>
  asked.map((each) => limitOf(text, each, atMs)).join();

test('a lift below a wider rule lifts this counter and no other one', (t) => {
  t.is(limitsOf(nested), '10,3,5,10,3');
  const one = lift(nested, 'user=ada path=/pay');
  t.is(limitsOf(one), '10,3,lifted,10,3');
  const two = lift(one, 'user=ada path=/', { untilMs: sixMs + hourMs });
  t.is(limitsOf(two), '10,lifted,lifted,10,3');
  t.is(limitsOf(two, sixMs), '10,lifted,5,10,3');
  t.is(limitsOf(two, sixMs + hourMs), '10,3,5,10,3');
  const top = lift(nested, 'user=ada');
  t.is(limitsOf(top), 'lifted,3,5,10,3');
  t.is(limitsOf(top, sixMs), '10,3,5,10,3');
  t.is(limitsOf(lift(one, 'user=ada')), 'lifted,3,lifted,10,3');
  const end = { untilMs: undefined };
  t.is(limitsOf(lift(two, 'user=ada path=/', end)), '10,3,lifted,10,3');
  t.is(lift(lift(two, 'user=ada path=/', end), 'user=ada path=/pay', end), nested);
  t.is(limitsOf(lift(lift(one, 'user=ada'), 'user=ada', end)), '10,3,lifted,10,3');
});

test('a lift below a rule for exactly this value goes into that rule', (t) => {
  const own = nested.replace('- key: user', '- key: user\n    value: ada');
  const text = lift(own, 'user=ada path=/x');
  t.regex(text, /\n {4}descriptors:\n {6}- \{key: path, value: \/x, until: /);
  t.is(limitOf(text, 'user=ada path=/x'), 'lifted');
  t.is(limitOf(text, 'user=ada path=/y'), '3');
  t.is(lift(text, 'user=ada path=/x', { untilMs: undefined }), own);
});

test('lists in brackets, dashes on lines of their own, anchors and other line breaks are kept', (t) => {
  const forms = [
    `domain: shop\ndescriptors: [{key: user, rate_limit: {unit: hour, requests_per_unit: 10}}]\n`,
    `domain: shop\ndescriptors:\n- key: user\n  rate_limit: {unit: hour, requests_per_unit: 10}`,
    `domain: shop\ndescriptors:\n  -\n    key: user\n    rate_limit: {unit: hour, requests_per_unit: 10}\n`,
    `domain: shop\ndescriptors:\n  - &each\n    key: user\n    rate_limit: {unit: hour, requests_per_unit: 10}\n`,
    flat.replaceAll('\n', '\r\n'),
    `{"domain": "shop", "descriptors": [{"key": "user", "rate_limit": {"unit": "hour", "requests_per_unit": 10}}]}`,
  ];
  for (const text of forms) {
    const lifted = lift(text, 'user=ada');
    t.is(limitOf(lifted, 'user=ada'), 'lifted', text);
    t.is(limitOf(lifted, 'user=bob'), '10', text);
    t.is(lift(lifted, 'user=ada', { untilMs: undefined }), text);
    t.is(/[^\r]\n/.test(lifted), /[^\r]\n/.test(text));
  }
});

test('a file in which a lift would say more than it should is left alone, and the rule is told', (t) => {
  const shared = `domain: shop
descriptors:
  - key: a
    descriptors: &below
      - {key: user, rate_limit: {unit: hour, requests_per_unit: 10}}
  - key: b
    descriptors: *below
`;
  t.is(
    refusal(shared.replaceAll('key: a', 'key: a\n    value: "1"'), 'a=1 user=ada'),
    '409 shop.yaml is written in a way that a lift of (a=1)(user=ada) in domain shop cannot be put into: write it yourself: - {key: user, value: ada, until: 2026-11-24T18:00:00Z, rate_limit: {unlimited: true}}',
  );
});

test('a lift that cannot be is refused, and says why', (t) => {
  const text = `${flat}  - {key: user, value: root, rate_limit: {unlimited: true}}
  - {key: open}
  - {key: user, value: eve, until: 2026-11-24T18:30:00Z, rate_limit: {unit: hour, requests_per_unit: 99}}
  - key: tenant
    value: a*
    share_threshold: true
    descriptors:
      - {key: path, rate_limit: {unit: hour, requests_per_unit: 3}}
`;
  const cases: readonly (readonly [string, string, Asked?])[] = [
    [
      'usr=ada',
      "404 no rule matches (usr=ada) of domain shop: no rule has the key 'usr'; did you mean 'user'?; the nearest rule is at shop.yaml:5:5",
    ],
    [
      'path=/b',
      "404 no rule matches (path=/b) of domain shop: no rule has the value '/b' for the key 'path'; did you mean '/a b'?; the nearest rule is at shop.yaml:8:5",
    ],
    ['open=1', '404 no limit applies to (open=1) of domain shop: there is nothing to lift'],
    ['user=root', '409 (user=root) has no limit to lift: it is unlimited'],
    [
      'user=eve',
      '409 user_eve has a rule of its own until 2026-11-24T18:30:00Z: end that first, or change it in the file',
    ],
    [
      'tenant=ab path=/',
      '409 (tenant=ab)(path=/) cannot be lifted by itself: the values of tenant_a* count together, and so do the rules below it',
    ],
    ['user=', '400 only the counter of exact values can be lifted: the entry user has no value'],
    ['user=a*', '400 only the counter of exact values can be lifted: user=a* has a *'],
    ['user=ada', '404 (user=ada) of domain shop is not lifted', { untilMs: undefined }],
  ];
  for (const [descriptor, expected, more] of cases) t.is(refusal(text, descriptor, more), expected);
  t.regex(
    refusal('domain: shop\ndescriptors: 7', 'user=ada'),
    /^409 shop.yaml has errors \(.*\): repair it first$/,
  );
  const many = Array.from(
    { length: 200 },
    (_, at) => `      - {key: p, value: v${at}, rate_limit: {unit: hour, requests_per_unit: 3}}\n`,
  );
  const wide = `domain: shop\ndescriptors:\n  - key: user\n    rate_limit: {unit: hour, requests_per_unit: 1}\n    descriptors:\n${many.join('')}`;
  t.regex(refusal(wide, 'user=ada'), /^409 .* has more than 200 rules below it/);
});

test('in merged files a lift goes into the file of the rule that it lifts', (t) => {
  const other = {
    path: 'a.yaml',
    text: 'domain: shop\ndescriptors:\n  - {key: plan, rate_limit: {unit: hour, requests_per_unit: 7}}\n',
  };
  const changed = planLift([other, { path: 'b.yaml', text: flat }], toAsked('user=ada'));
  t.deepEqual(changed, [{ path: 'b.yaml', text: lift(flat, 'user=ada') }]);
});

test('whatever the values are, the lift is for exactly them', (t) => {
  const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 });
  let count = 0;
  fc.assert(
    fc.property(text, text, (value, other) => {
      if (value.includes('*') || value === other) return;
      const file = { path: 'shop.yaml', text: flat };
      const entries = [{ key: 'user', value }];
      let lifted: string | undefined;
      try {
        lifted = planLift([file], { ...toAsked('user=x'), entries })[0]?.text;
      } catch (error) {
        // A text that YAML cannot hold is refused.
        if (error instanceof HttpError && error.status === 409) return;
        throw error;
      }
      const { document } = parseRuleDocument(lifted ?? '', 'shop.yaml');
      const options = { mergeDomains: false, sanitizeMetricDots: false };
      const built = buildRuleSet(document ? [document] : [], options, nowMs);
      if (!built.ok) throw new Error('the text is wrong');
      const rules = built.ruleSet.domains.get('shop');
      const isLifted = (each: string) =>
        rules?.match([{ key: 'user', value: each }])?.limit.unlimited === true;
      count++;
      t.true(isLifted(value), toFlowText(value));
      t.false(isLifted(other), toFlowText(value));
    }),
    { numRuns: 200 },
  );
  t.true(count > 100, `${count} were lifted`);
});
