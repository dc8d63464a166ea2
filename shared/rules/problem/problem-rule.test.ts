import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { parseRuleDocument } from '../document/document.ts';
import { buildRuleSet } from '../rule-set.ts';

const fixtures = new URL('../../../test/fixtures/rules/', import.meta.url);

test('every problem of every fixture has a kind', (t) => {
  let count = 0;
  for (const folder of ['bad', 'warned']) {
    for (const name of readdirSync(new URL(folder, fixtures))) {
      if (!name.endsWith('.yaml')) continue;
      const text = readFileSync(new URL(`${folder}/${name}`, fixtures), 'utf8');
      for (const { rule, message } of parseRuleDocument(text, name).problems) {
        t.not(rule, 'other', `${name}: ${message}`);
        count++;
      }
    }
  }
  t.true(count > 80);
});

test('problems across several documents have a kind', (t) => {
  const text =
    'domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: x}]}}';
  const documents = ['a', 'b'].flatMap((file) => parseRuleDocument(text, file).document ?? []);
  for (const mergeDomains of [true, false]) {
    const built = buildRuleSet(documents, { mergeDomains, sanitizeMetricDots: false });
    t.deepEqual(
      built.ok ? [] : built.problems.map(({ rule }) => rule).sort(),
      mergeDomains
        ? ['duplicate-descriptor', 'unknown-replaced-name', 'unknown-replaced-name']
        : ['duplicate-domain', 'unknown-replaced-name', 'unknown-replaced-name'],
    );
  }
});
