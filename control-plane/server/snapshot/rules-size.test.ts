import test from 'ava';
import { parseRuleDocument } from '../../../shared/rules/document/document.ts';
import { RulesSize } from './build.ts';

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
  const below = 'descriptors: [{key: k1}, {key: k2}, {key: k3}, {key: k4}, {key: k5}]';
  const long = `domain: d\ndescriptors: [{key: k, value: ${'v'.repeat(2 ** 22 - 200)}, ${below}}]\n`;
  const names = new RulesSize();
  t.deepEqual(
    [1, 2, 3].map((file) => names.add(documentOf(long.replace(' d', ` d${file}`)))?.message),
    [
      undefined,
      undefined,
      "with this file there are more than 67108864 characters in keys and values, each rule's with those above it, the most that a control plane serves",
    ],
  );
});

for (const [what, start, item, end] of [
  ['10000 names in replaces of', 'rate_limit: {unlimited: true, replaces: [', '{name: m}, ', ']}'],
  ['100000 values of metadata in', 'metadata: {list: [2, ', '1, ', ']}'],
] as const) {
  test(`a rule has not more than ${what} it: it is copied and compared in one step`, (t) => {
    const text = `descriptors: [{key: k, ${start}${item.repeat(Number.parseInt(what, 10) + 1)}${end}}]`;
    const { document } = parseRuleDocument(`domain: d\n${text}\n`, 'a.yaml');
    const { message, hint } = (document && new RulesSize().add(document)) ?? {};
    t.true(message?.includes(`more than ${what} the rule 'k'`), message);
    t.is(hint, 'divide it over several rules');
  });
}
