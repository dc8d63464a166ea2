import test from 'ava';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { RulesSize } from './rules-size.ts';

test('rules, limits and values of metadata count, also those that aliases stand for, of all files together', (t) => {
  const size = new RulesSize(21);
  const documentOf = (text: string) => {
    const { document } = parseRuleDocument(text, 'a.yaml');
    if (document === undefined) throw new Error('the file is not valid');
    return document;
  };
  const add = (text: string) => size.add(documentOf(text))?.message;
  // Two rules above, and two below each of them.
  const aliased =
    'descriptors: [{key: a, descriptors: &l [{key: x}, {key: y}]}, {key: b, descriptors: *l}]';
  t.is(add(`domain: one\n${aliased}\n`), undefined);
  t.is(add(`domain: two\n${aliased}\n`), undefined);
  const limit = 'rate_limit: {unit: hour, requests_per_unit: 1}';
  // A rule, its limit, the metadata, its list and two values.
  const last = `domain: three\ndescriptors: [{key: a, ${limit}, metadata: {list: [1, 2]}}]\n`;
  t.is(add(last), undefined);
  t.is(
    add(last.replace('[1, 2]', '[1, 2, 3]').replace('three', 'four'))?.slice(0, 40),
    'with this file there are more than 21 ru',
  );
  const name = 'd'.repeat(1_024);
  t.is(new RulesSize().add(documentOf(`domain: ${name}\n`)), undefined);
  t.is(
    new RulesSize().add(documentOf(`domain: ${name}d\n`))?.message,
    'the domain has 1025 characters, more than the 1024 that a worker can ask for',
  );
});

for (const [what, rule] of [
  [
    '10000 names in replaces',
    (count: number) =>
      `rate_limit: {unlimited: true, name: n, replaces: [${'{name: m}, '.repeat(count)}{name: o}]}`,
  ],
  [
    '100000 values of metadata',
    (count: number) => `metadata: {list: [${'1, '.repeat(count - 2)}1]}`,
  ],
] as const) {
  test(`a rule has at most ${what}: it is copied and compared in one step`, (t) => {
    const add = (count: number) => {
      const text = `domain: d\ndescriptors: [{key: k, ${rule(count)}}]\n`;
      const { document, problems } = parseRuleDocument(text, 'a.yaml');
      if (document === undefined) throw new Error(problems[0]?.message);
      return new RulesSize().add(document);
    };
    const most = Number.parseInt(what, 10);
    t.is(add(most - 1), undefined);
    const { message, hint } = add(most) ?? {};
    t.regex(message ?? '', new RegExp(`more than ${what}(?: of|.in) the rule 'k'`));
    t.is(hint, 'divide it over several rules');
  });
}
