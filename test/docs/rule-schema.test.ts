// The JSON Schema of rules documents agrees with `check`, as far as a schema can.
import { readdirSync, readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import test from 'ava';
import { parse } from 'yaml';
import { parsePolicy } from '../../control-plane/authoring/policy/policy-file.ts';
import { formatPolicySchema } from '../../control-plane/authoring/policy/policy-keys.ts';
import { formatRuleSchema } from '../../control-plane/authoring/schema/json-schema.ts';
import {
  formatNodeGroupsSchema,
  parseNodeGroups,
} from '../../control-plane/server/snapshot/node-groups.ts';
import { parseRuleDocument } from '../../shared/rules/document/document.ts';
import { isError } from '../../shared/rules/problem/problem.ts';
import { ruleKeys, type Section } from '../../shared/rules/rule-keys.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const isValid = new Ajv({ allErrors: true, strictTypes: false, strictRequired: false }).compile(
  JSON.parse(formatRuleSchema()),
);

test('the stored schema is the one that the code generates', (t) => {
  const stored = JSON.parse(read('shared/rules/rules.schema.json'));
  t.deepEqual(stored, JSON.parse(formatRuleSchema()), 'run npm run docs');
});

for (const folder of ['compose/rules', 'test/fixtures/rules/good']) {
  for (const name of readdirSync(new URL(`../../${folder}`, import.meta.url))) {
    if (!name.endsWith('.yaml')) continue;
    test(`${folder}/${name} is valid by the schema`, (t) => {
      const written = parse(read(`${folder}/${name}`), { version: '1.1', merge: true });
      // Rules treat a date as text.
      const document = JSON.parse(JSON.stringify(written));
      t.true(isValid(document), JSON.stringify(isValid.errors, undefined, 2));
    });
  }
}

test('each sample names the schema', (t) => {
  for (const name of readdirSync(new URL('../../compose/rules', import.meta.url))) {
    t.regex(
      read(`compose/rules/${name}`),
      /^# yaml-language-server: \$schema=\.\.\/\.\.\/shared\/rules\/rules\.schema\.json$/m,
    );
  }
});

const kinds: readonly unknown[] = [null, {}, [], [{}], 'text', '', 7, 1.5, true];
/** A key with the given value, at a valid position, in a document that is valid without it. */
function documentWith(key: string, section: Section, value: unknown): object {
  const change = { [key]: value };
  const lease = { share: '5%', for: '1s', ...(section === 'lease' && change) };
  const replaced = { name: 'other', ...(section === 'replaces' && change) };
  const rateLimit = {
    ...{ unit: 'minute', requests_per_unit: 5, algorithm: 'token_bucket', lease },
    ...{ replaces: [replaced], ...(section === 'rate_limit' && change) },
  };
  const isOfLists = key === 'rate_limits' && value !== null;
  const descriptor = {
    ...{ key: 'a', value: 'b*' },
    ...(isOfLists ? {} : { rate_limit: rateLimit }),
    ...(section === 'descriptor' && change),
  };
  return { domain: 'd', descriptors: [descriptor], ...(section === 'document' && change) };
}

for (const row of ruleKeys) {
  for (const section of row.sections) {
    test(`the schema accepts what check accepts as ${row.name} of ${section}`, (t) => {
      for (const value of kinds) {
        const document = documentWith(row.name, section, value);
        const { problems } = parseRuleDocument(JSON.stringify(document), 'r.yaml');
        const errors = problems.filter(isError).map(({ message }) => message);
        const text = `${row.name}: ${JSON.stringify(value)}`;
        t.is(isValid(document), errors.length === 0, `${text} ${errors.join('; ')}`);
      }
    });
  }
}

const limit = { unit: 'minute', requests_per_unit: 1 };
const mistakes: readonly (readonly [what: string, descriptor: object])[] = [
  ['an unknown key', { key: 'a', rate_limt: limit }],
  ['a key that stands elsewhere', { key: 'a', unit: 'minute', requests_per_unit: 1 }],
  ['no key', { rate_limit: limit }],
  ['an unknown unit', { key: 'a', rate_limit: { ...limit, unit: 'mintue' } }],
  ['a limit without a unit', { key: 'a', rate_limit: { requests_per_unit: 1 } }],
  ['a limit without a number', { key: 'a', rate_limit: { unit: 'minute' } }],
  ['a number below 0', { key: 'a', rate_limit: { ...limit, requests_per_unit: -1 } }],
  ['a number above 32 bits', { key: 'a', rate_limit: { ...limit, requests_per_unit: 2 ** 32 } }],
  ['a unit without a limit', { key: 'a', rate_limit: { ...limit, unlimited: true } }],
  ['a flag in quotes', { key: 'a', shadow_mode: 'true', rate_limit: limit }],
  ['replaces as words', { key: 'a', rate_limit: { ...limit, replaces: ['b'] } }],
];

for (const [what, descriptor] of mistakes) {
  test(`the schema marks ${what}`, (t) => {
    t.true(isValid({ domain: 'd', descriptors: [{ key: 'a', rate_limit: limit }] }));
    t.false(isValid({ domain: 'd', descriptors: [descriptor] }));
  });
}

test('the stored schema of policies is the one that the code generates', (t) => {
  const stored = JSON.parse(read('control-plane/authoring/policy/policy.schema.json'));
  t.deepEqual(stored, JSON.parse(formatPolicySchema()), 'run npm run docs');
});

test('the stored schema of node groups is the one that the code generates', (t) => {
  const stored = JSON.parse(read('control-plane/server/snapshot/node-groups.schema.json'));
  t.deepEqual(stored, JSON.parse(formatNodeGroupsSchema()), 'run npm run docs');
});

const nodeGroups = {
  'a group with all keys':
    'groups: [{ name: edge, match: { id: e-*, cluster: [eu, us], metadata: { stage: live } }, domains: [shop], rollout: 5%:60s }]',
  'no groups': 'groups: []',
  'a number for a text': 'groups: [{ name: 7, domains: [1, true] }]',
  'no list of groups': '{}',
  'another key': 'groups: [{ name: a, domains: [], matches: {} }]',
  'another condition': 'groups: [{ name: a, domains: [], match: { ids: a } }]',
  'no name': 'groups: [{ domains: [] }]',
  'no domains': 'groups: [{ name: a }]',
  'a name that is taken': 'groups: [{ name: default, domains: [] }]',
  'a mapping for a pattern': 'groups: [{ name: a, domains: { shop: 1 } }]',
  'too many groups': `groups: [${Array.from({ length: 201 }, (_, index) => `{ name: g${index}, domains: [] }`).join(', ')}]`,
};
const isGroups = new Ajv({ allowUnionTypes: true }).compile(JSON.parse(formatNodeGroupsSchema()));

for (const [what, text] of Object.entries(nodeGroups)) {
  test(`the schema of node groups agrees with the control plane on ${what}`, (t) => {
    const { problems } = parseNodeGroups(text, ['shop']);
    t.is(isGroups(parse(text)), !problems.some(isError), JSON.stringify(isGroups.errors));
  });
}

test('the policy in the page is valid', (t) => {
  const [, text = ''] =
    /^## Policies$.*?```yaml\n(.*?)```/ms.exec(read('control-plane/docs/commands.md')) ?? [];
  const { policy, problems } = parsePolicy(text);
  t.deepEqual(problems, []);
  t.is(policy.policies.length, 1);
});
