// Hints are taken at their word: the text that a hint shows replaces the mistake, and the document is accepted
// then.
import test from 'ava';
import { parseRuleDocument } from './document.ts';

const limit = 'rate_limit: {unit: minute, requests_per_unit: 3}';
const named = 'rate_limit: {unit: minute, requests_per_unit: 3, name: base';

interface Row {
  readonly mistake: string;
  readonly yaml: string;
  /** The part of `yaml` that the hint's text replaces. */
  readonly wrong: string;
}

function ofDescriptor(mistake: string, wrong: string, ...lines: readonly string[]): Row {
  const yaml = `domain: shop\ndescriptors:\n${lines.map((line) => `  ${line}\n`).join('')}`;
  return { mistake, yaml, wrong };
}

const rows: readonly Row[] = [
  ofDescriptor('an item that is text', '- ip', '- ip'),
  ofDescriptor('an item whose colon has no space', '- key:ip', '- key:ip'),
  ofDescriptor(
    'a colon without a space on a line',
    'value:a',
    '- key: ip',
    `  ${limit}`,
    '  value:a',
  ),
  ofDescriptor('a colon without a space in braces', 'key:ip', `- {key:ip, ${limit}}`),
  ofDescriptor('a misspelled key', 'rate_limt', '- key: ip', `  ${limit.replace('limit', 'limt')}`),
  ofDescriptor('a look-alike key', 'k\u0435y', '- k\u0435y: ip', `  ${limit}`),
  ofDescriptor('a key in smart quotes', '\u201ckey\u201d', '- \u201ckey\u201d: ip', `  ${limit}`),
  ofDescriptor(
    'a misspelled unit',
    'mintue',
    '- key: ip',
    `  ${limit.replace('minute', 'mintue')}`,
  ),
  ofDescriptor(
    'a look-alike unit',
    'm\u0456n',
    '- key: ip',
    `  ${limit.replace('minute', 'm\u0456n')}`,
  ),
  ofDescriptor('a number in quotes', "'3'", '- key: ip', `  ${limit.replace('3', "'3'")}`),
  ofDescriptor(
    'a number with a no-break space',
    '3\u00a0',
    '- key: ip',
    `  ${limit.replace('3', '3\u00a0')}`,
  ),
  ofDescriptor('a flag in quotes', "'true'", '- key: ip', "  shadow_mode: 'true'", `  ${limit}`),
  ofDescriptor('a limit that is text', '10/minute', '- key: ip', '  rate_limit: 10/minute'),
  ofDescriptor('a number with a letter', '10k', '- key: ip', `  ${limit.replace('3', '10k')}`),
  ofDescriptor('a unit by its number', '2', '- key: ip', `  ${limit.replace('minute', '2')}`),
  ofDescriptor(
    'an algorithm by another name',
    'leaky_bucket',
    '- key: ip',
    `  ${limit.replace('}', ', algorithm: leaky_bucket}')}`,
  ),
  ofDescriptor('a null in place of a text', '~', '- key: ip', '  value: ~', `  ${limit}`),
  ofDescriptor(
    'a list of limits',
    'rate_limit',
    '- key: ip',
    '  rate_limit:',
    '    - {unit: second, requests_per_unit: 3}',
    '    - {unit: hour, requests_per_unit: 9}',
  ),
  ofDescriptor('a fraction', '1.5', '- key: ip', '  value: 1.5', `  ${limit}`),
  ofDescriptor('a name to replace alone', 'other', '- key: ip', `  ${named}, replaces: other}`),
  ofDescriptor('a replaced mapping', '{name: x}', '- key: ip', `  ${named}, replaces: {name: x}}`),
  ofDescriptor(
    'replaced names in a list',
    '- other',
    '- key: ip',
    '  rate_limit:',
    '    unit: minute',
    '    requests_per_unit: 3',
    '    replaces:',
    '      - other',
  ),
  ofDescriptor(
    'a misspelled anchor',
    '*limt',
    '- key: a',
    `  ${limit.replace(' ', ' &limit ')}`,
    '- key: b',
    '  rate_limit: *limt',
  ),
  ofDescriptor(
    'a star that YAML takes for an alias',
    '*.png',
    '- key: a',
    '  value: *.png',
    `  ${limit}`,
  ),
  ofDescriptor(
    'a value in smart quotes',
    '\u201ca\u201d',
    '- key: a',
    '  value: \u201ca\u201d',
    `  ${limit}`,
  ),
  ofDescriptor(
    'a value with a space at its end',
    "'a '",
    '- key: a',
    "  value: 'a '",
    `  ${limit}`,
  ),
  ofDescriptor('a regular expression', '^/api/.*$', '- key: a', '  value: ^/api/.*$', `  ${limit}`),
];

/** The text that stands in quotes after the last word that introduces it, or in braces at the end. */
function shownIn(hint: string): string | undefined {
  const asked = /(?:did you mean|such as|write|in quotes:)[^']*('([^']*)')/.exec(hint);
  if (asked !== null) return hint.includes('in quotes') ? asked[1] : asked[2];
  return /: ([[{].*)$/.exec(hint)?.[1] ?? /(?:without quotes|in digits): (\S+)$/.exec(hint)?.[1];
}

for (const { mistake, yaml, wrong } of rows) {
  test(`the hint for ${mistake} leads to a document without problems of that kind`, (t) => {
    const [problem] = parseRuleDocument(yaml, 'rules.yaml').problems;
    const shown = shownIn(problem?.hint ?? '') ?? '';
    t.not(shown, '', problem?.hint);
    const repaired = parseRuleDocument(yaml.replace(wrong, shown), 'rules.yaml');
    t.truthy(repaired.document, JSON.stringify(repaired.problems));
    t.false(repaired.problems.some(({ message }) => message === problem?.message));
  });
}

test('a regular expression that no value with a star can stand for is not shown as one', (t) => {
  const hintFor = (value: string) => {
    const { yaml } = ofDescriptor('', '', '- key: a', `  value: ${value}`, `  ${limit}`);
    return parseRuleDocument(yaml, 'shop.yaml').problems.map(({ hint }) => hint);
  };
  const star = "a '*' stands for any characters";
  const each = `${star}; write one rule for each alternative`;
  const longest = 'x'.repeat(58);
  t.deepEqual(hintFor('^/(api|web)/.*$'), [each]);
  t.deepEqual(hintFor(`^/${longest}.*$`), [`${star}: write '/${longest}*'`]);
  t.deepEqual(hintFor(`^/x${longest}.*$`), [each]);
});

test('a unit that is written as people shorten it, with a number or without', (t) => {
  const hintFor = (unit: string) => {
    const yaml = `domain: shop\ndescriptors:\n  - key: k\n    rate_limit: {unit: ${unit}, requests_per_unit: 1}\n`;
    return parseRuleDocument(yaml, 'shop.yaml').problems.map(({ hint }) => hint)[0];
  };
  const allowed = 'allowed are second, minute, hour, day, week, month and year';
  const guesses = {
    hr: 'hour',
    hrs: 'hour',
    mins: 'minute',
    Sec: 'second',
    daily: 'day',
    yr: 'year',
  };
  for (const [unit, meant] of Object.entries(guesses)) {
    t.is(hintFor(unit), `did you mean '${meant}'? ${allowed}`, unit);
  }
  t.is(hintFor('5 minutes'), 'write unit: minute and unit_multiplier: 5');
  t.is(hintFor('2wks'), 'write unit: week and unit_multiplier: 2');
  t.is(hintFor('1h'), "write 'hour'");
  // Milliseconds are no minutes.
  t.is(hintFor('5ms'), allowed);
  t.is(hintFor('3'), "write 'hour', whose number in messages is 3");
});
