import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { checkRules } from '../../authoring/checked-rules.ts';
import { findingRemoval } from './large-removal.ts';
import { readGroupDomains } from './node-change.ts';

/** `a: 3` is a domain with three limits. */
function rulesOf(
  limits: Readonly<Record<string, number>>,
  limit = 'unit: hour, requests_per_unit: 1',
) {
  const documents = Object.entries(limits).flatMap(([domain, count]) => {
    const rules = Array.from(
      { length: count },
      (_, at) => `  - {key: k${at}, rate_limit: {${limit}}}`,
    );
    const yaml = `domain: ${domain}\ndescriptors:\n${rules.join('\n')}\n`;
    return parseRuleDocument(yaml, `${domain}.yaml`).document ?? [];
  });
  const checked = checkRules(documents, { mergeDomains: false });
  if (!checked.ok) throw new Error('the rules of this test are wrong');
  const groups = readGroupDomains(undefined, Object.keys(limits));
  return { ruleSet: checked.rules, documents, groups };
}

test('a change that leaves no domain is held back, however small', (t) => {
  t.regex(
    runAtOnce(findingRemoval(rulesOf({ a: 1 }), rulesOf({})))?.message ?? '',
    /^held back: no domain would be left \(a\.k0\)$/,
  );
  t.is(runAtOnce(findingRemoval(rulesOf({}), rulesOf({}))), undefined);
});

test('a change that takes more than half of the limits is held back from ten on', (t) => {
  const held = (before: number, after: number) =>
    runAtOnce(findingRemoval(rulesOf({ a: before }), rulesOf({ a: after }), true)) !== undefined;
  t.true(held(19, 9));
  t.false(held(20, 10), 'half is not more than half');
  t.false(held(17, 8), 'nine are not ten');
  t.false(held(5, 1));
  t.true(held(1000, 499));
});

test('a change that removes a domain or half of its limits is held back, but for one limit that another one replaces', (t) => {
  const textOf = (before: Record<string, number>, after: Record<string, number>, isUndo = false) =>
    runAtOnce(findingRemoval(rulesOf(before), rulesOf(after), isUndo))?.message;
  t.is(textOf({ a: 2, b: 50 }, { b: 50 }), "held back: domain 'a' would go (a.k0, a.k1)");
  t.is(
    textOf({ a: 4, b: 50 }, { a: 2, b: 50 }),
    "held back: domain 'a' would lose 2 of 4 limits (a.k2, a.k3)",
  );
  t.is(textOf({ a: 5, b: 50 }, { a: 3, b: 50 }), undefined, 'two are not half of five');
  t.is(textOf({ a: 1, b: 50 }, { b: 50 }), "held back: domain 'a' would go (a.k0)");
  t.is(textOf({ a: 1, b: 50 }, { b: 50, c: 1 }), undefined, 'renamed');
  t.is(textOf({ a: 2, b: 50 }, { b: 50 }, true), undefined, 'an undo');
});

test('limits that would go are listed by domain and keys, up to twenty', (t) => {
  const { message = '', hint = '' } =
    runAtOnce(findingRemoval(rulesOf({ a: 30, b: 1 }), rulesOf({ b: 1 }))) ?? {};
  t.regex(message, /^held back: 30 of 31 limits would go \(a\.k0, a\.k1, .*a\.k19, 10 more\)$/);
  t.regex(hint, /approve the revision/);
  t.regex(
    runAtOnce(findingRemoval(rulesOf({ a: 21 }), rulesOf({})))?.message ?? '',
    /a\.k19, 1 more\)$/,
  );
});

test('a limit that becomes unlimited goes, one that gets another number stays', (t) => {
  const before = rulesOf({ a: 12 });
  t.truthy(runAtOnce(findingRemoval(before, rulesOf({ a: 12 }, 'unlimited: true'))));
  t.is(
    runAtOnce(findingRemoval(before, rulesOf({ a: 12 }, 'unit: day, requests_per_unit: 9'))),
    undefined,
  );
});
