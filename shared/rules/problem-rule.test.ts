import { readdirSync, readFileSync } from 'node:fs';
import test from 'ava';
import { parseRuleDocument } from './document.ts';
import type { Problem } from './problem.ts';
import { toProblemRule } from './problem-rule.ts';
import { buildRuleSet } from './rule-set.ts';

const fixtures = new URL('../../test/fixtures/rules/', import.meta.url);

function problem(message: string): Problem {
  return {
    severity: 'error',
    file: 'r.yaml',
    line: 1,
    column: 1,
    path: '',
    message,
    hint: undefined,
    sourceLine: undefined,
  };
}

const idOf = (message: string): string => toProblemRule(problem(message)).id;

test('every problem of every fixture is of a known kind', (t) => {
  let count = 0;
  for (const folder of ['bad', 'warned']) {
    for (const name of readdirSync(new URL(folder, fixtures))) {
      if (!name.endsWith('.yaml')) continue;
      const { problems } = parseRuleDocument(
        readFileSync(new URL(`${folder}/${name}`, fixtures), 'utf8'),
        name,
      );
      for (const each of problems) {
        t.not(toProblemRule(each).id, 'other', `${name}: ${each.message}`);
        count++;
      }
    }
  }
  t.true(count > 80);
});

test('problems that take several documents are of a known kind', (t) => {
  const text =
    'domain: d\ndescriptors:\n  - {key: k, rate_limit: {unit: day, requests_per_unit: 1, replaces: [{name: x}]}}';
  const documents = ['a', 'b'].flatMap((file) => parseRuleDocument(text, file).document ?? []);
  for (const mergeDomains of [true, false]) {
    const built = buildRuleSet(documents, { mergeDomains, sanitizeMetricDots: false });
    t.deepEqual(
      built.ok ? [] : built.problems.map((each) => toProblemRule(each).id).sort(),
      mergeDomains
        ? ['duplicate-descriptor', 'unknown-replaced-name', 'unknown-replaced-name']
        : ['duplicate-domain', 'unknown-replaced-name', 'unknown-replaced-name'],
    );
  }
});

test('kinds are told apart by how a message begins, not by the values in it', (t) => {
  t.is(idOf("unknown key 'this rule can never match'"), 'unknown-key');
  t.is(idOf('name is empty, not text'), 'value-type');
  t.is(idOf('stage::: is empty, not text'), 'value-type');
  t.is(idOf("a group is 'edge', not a mapping"), 'value-type');
  t.is(idOf("invalid rate limit unit 'a is not of the type !!int'"), 'invalid-unit');
  t.is(idOf("value is 'x', not true or false"), 'value-type');
  t.is(idOf('and 3 more errors'), 'other');
});

test('problems of what serves rules are of a known kind', (t) => {
  t.is(idOf("'shp' matches no domain"), 'node-groups');
  t.is(idOf('the group has no name'), 'node-groups');
  t.is(idOf("the rules for node group 'edge' are a response of 5 bytes"), 'response-size');
});

test('problems of rules beside an Envoy configuration are of a known kind', (t) => {
  t.is(idOf("no rule of domain 'shop' takes (a=1): no rule has the key 'a'"), 'envoy-no-rule');
  t.is(
    idOf("there are no rules for domain 'shop', so nothing of it is limited"),
    'envoy-unknown-domain',
  );
  t.is(
    idOf('no Envoy action can come to this rule, nor to those below it'),
    'envoy-unreached-rule',
  );
  t.is(idOf("no Envoy configuration asks about domain 'shop'"), 'envoy-unasked-domain');
  t.is(idOf('these actions are never sent: no filter'), 'envoy-never-sent');
  t.is(idOf('not checked: listeners that come over LDS'), 'envoy-not-checked');
});
