import test from 'ava';
import { parseRuleDocument } from '../shared/rules/document/document.ts';
import { createStubMetrics } from '../test/support/stub-metrics.ts';
import { Unmatched } from './unmatched.ts';

const shop = `domain: shop
descriptors:
  - key: customer
    rate_limit: {unit: hour, requests_per_unit: 100}
    descriptors:
      - {key: plans, rate_limit: {unit: hour, requests_per_unit: 10}}
`;

function setUp(yaml = shop) {
  const metrics = createStubMetrics();
  const unmatched = new Unmatched(metrics);
  const use = (text: string) => {
    const { document } = parseRuleDocument(text, 'shop.yaml');
    unmatched.useRules(document === undefined ? [] : [document]);
  };
  use(yaml);
  const add = (domain: string, text: string, atSeconds = 1_700_000_000) => {
    const entries = text.split(',').map((pair) => {
      const [key = '', value = ''] = pair.split('=');
      return { key, value };
    });
    metrics.counter(`ratelimit.service.no_match.${domain}`).add(1);
    unmatched.add({ domain, entries, isCut: false, atSeconds });
  };
  return { unmatched, add, use };
}

test('samples are shown by domain and keys, each with the nearest rule and why it does not match', async (t) => {
  const { unmatched, add } = setUp();
  add('shop', 'customer=ada,plan=gold');
  add('shop', 'customer=ada,plan=gold', 1_700_000_060);
  add('shop', 'customer=grace,plan=silver', 1_700_000_061);
  add('shopp', 'customer=ada', 1_700_000_062);
  t.deepEqual(await unmatched.describe(), [
    'domain shop: 3 descriptors since the start matched no rule',
    '  (customer)(plan): sampled 3 times, last at 2023-11-14T22:14:21Z',
    '    (customer=ada)(plan=gold)',
    "      rule shop.customer matches the first entry, but no rule below it has the key 'plan'; did you mean 'plans'?",
    '      nearest rule: shop.yaml:6:9',
    '    (customer=grace)(plan=silver)',
    "      rule shop.customer matches the first entry, but no rule below it has the key 'plan'; did you mean 'plans'?",
    '      nearest rule: shop.yaml:6:9',
    "domain shopp: there are no rules for it; did you mean 'shop'? (last seen 2023-11-14T22:14:22Z)",
  ]);
  t.is(
    unmatched.summarize(),
    'unmatched: 3 of domain shop, those of 1 domain without rules; /unmatched explains why',
  );
});

test('new rules discard the samples taken before them', async (t) => {
  const { unmatched, add, use } = setUp();
  add('shop', 'customer=ada,plan=gold');
  use(shop.replace('plans', 'plan'));
  t.deepEqual(await unmatched.describe(), [
    'since the rules were loaded, every descriptor matched a rule, or there was none',
  ]);
  t.is(unmatched.summarize(), 'unmatched: no descriptor since the rules were loaded');
});

test('endless keys, examples and domains are bounded, and what is left out is counted', async (t) => {
  const { unmatched, add } = setUp();
  for (let index = 0; index < 1_000; index++) add('shop', `key${index}=a`);
  for (let index = 0; index < 1_000; index++) add('shop', `key0=value${index}`);
  for (let index = 0; index < 1_000; index++) add(`domain${index}`, 'a=b');
  const lines = await unmatched.describe();
  t.is(lines.filter((line) => line.startsWith('  (')).length, 20);
  t.is(lines.filter((line) => line.startsWith('    (key0=')).length, 3);
  t.true(lines.includes('  and 980 samples with other keys'));
  t.is(lines.filter((line) => line.startsWith('domain ')).length, 81);
  t.is(lines.at(-1), 'and 920 samples of other domains');
});

test('texts from requests have no effect on a terminal', async (t) => {
  const { unmatched, add } = setUp();
  add('shop', 'a\u001b[2J=b\n');
  t.true((await unmatched.describe()).every((line) => !/[\p{Cc}]/u.test(line)));
});

test('decisions continue while the rules of a large domain are searched for the page', async (t) => {
  const rules = Array.from({ length: 20_000 }, (_, at) => `  - {key: customer, value: c${at}}\n`);
  const { unmatched, add } = setUp(`domain: shop\ndescriptors:\n${rules.join('')}`);
  add('shop', 'customer=ada');
  let turns = 0;
  const count = () => {
    turns++;
    turning = setImmediate(count);
  };
  let turning = setImmediate(count);
  await unmatched.describe();
  clearImmediate(turning);
  // It takes some ten milliseconds; a slice is one.
  t.true(turns > 2, `${turns}`);
});
