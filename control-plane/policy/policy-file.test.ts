import { Ajv } from 'ajv';
import test from 'ava';
import { parse } from 'yaml';
import { isError } from '../../shared/rules/problem/problem.ts';
import { formatProblems } from '../../shared/rules/problem/problem-text.ts';
import { parsePolicy } from './policy-file.ts';
import { formatPolicySchema } from './policy-keys.ts';

const isValid = new Ajv({ allErrors: true, strictTypes: false }).compile(
  JSON.parse(formatPolicySchema()),
);

test('a policy has its domains, owners, fields, bounds and factor', (t) => {
  const text = `owners: platform
policies:
  - domains: [shop-*, mail]
    owners: [shop-ci, '*@shop.example']
    require: [name, metadata.ticket]
    bounds:
      - {unit: second, most: 100}
      - {least: 1}
    largest_factor: 2.5
    unlimited: false
  - domains: '*'
`;
  const { policy, problems } = parsePolicy(text);
  t.deepEqual(problems, []);
  t.deepEqual(policy, {
    owners: ['platform'],
    policies: [
      {
        domains: ['shop-*', 'mail'],
        owners: ['shop-ci', '*@shop.example'],
        require: ['name', 'metadata.ticket'],
        bounds: [
          { unit: 'second', least: 0, most: 100 },
          { unit: undefined, least: 1, most: 0xffff_ffff },
        ],
        largestFactor: 2.5,
        allowsUnlimited: false,
        line: 3,
      },
      {
        domains: ['*'],
        owners: undefined,
        require: [],
        bounds: [],
        largestFactor: undefined,
        allowsUnlimited: true,
        line: 11,
      },
    ],
  });
  t.true(isValid(parse(text)));
});

test('every mistake is told, with its place and what to do', (t) => {
  const text = `owner: platform
policies:
  - domain: shop
  - owners: []
    domains: [[x]]
    require: [nmae]
    bounds: [{}, {unit: mintue, most: 5}, {least: 7, most: 5}]
    largest_factor: 1
    unlimited: maybe
  - {}
`;
  t.is(
    formatProblems(parsePolicy(text).problems),
    `policy.yaml:1:1: error: unknown key 'owner'
    owner: platform
    ^
    hint: did you mean 'owners'?
policy.yaml:3:5: error: unknown key 'domain'
      - domain: shop
        ^
    hint: did you mean 'domains'?
policy.yaml:5:15: error: domains is a list, not text
        domains: [[x]]
                  ^
policy.yaml:4:13: error: owners is an empty list
      - owners: []
                ^
policy.yaml:6:15: error: require is 'nmae', not name, or metadata.KEY
        require: [nmae]
                  ^
policy.yaml:7:14: error: the bound has neither least nor most
        bounds: [{}, {unit: mintue, most: 5}, {least: 7, most: 5}]
                 ^
policy.yaml:7:25: error: unit is 'mintue', not second or minute or hour or day or week or month or year
        bounds: [{}, {unit: mintue, most: 5}, {least: 7, most: 5}]
                            ^
policy.yaml:7:51: error: least is 7, more than most, which is 5
        bounds: [{}, {unit: mintue, most: 5}, {least: 7, most: 5}]
                                                      ^
policy.yaml:8:21: error: largest_factor is 1, not above 1
        largest_factor: 1
                        ^
policy.yaml:9:16: error: unlimited is 'maybe', not true or false
        unlimited: maybe
                   ^
policy.yaml:10:5: error: the policy has no domains
      - {}
        ^
    hint: for all of them: 'domains: "*"'`,
  );
  t.false(isValid(parse(text)));
});

test('a document without policies, and no mapping, are errors', (t) => {
  for (const text of ['', 'owners: a', '- a', 'policies: 3']) {
    t.true(parsePolicy(text).problems.some(isError), text);
    t.false(isValid(parse(text)), text);
  }
});
