import test from 'ava';
import { runAtOnce } from '../../../shared/in-slices.ts';
import { cuttingRule, findingRuleLines } from './rule-source.ts';

const cutRule = (...asked: Parameters<typeof cuttingRule>) => runAtOnce(cuttingRule(...asked));

const text = `domain: d
descriptors:
  # For those who pay.
  - key: plan
    value: paid

    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 3 }

  - key: guest
`;

test('the excerpt of a rule has the comments above it and the rules below it', (t) => {
  t.is(
    cutRule(text, 4),
    `# For those who pay.
- key: plan
  value: paid

  descriptors:
    - key: user
      rate_limit: { unit: hour, requests_per_unit: 3 }`,
  );
  t.is(cutRule(text, 8), '- key: user\n  rate_limit: { unit: hour, requests_per_unit: 3 }');
});

test('a line that the file does not have contains no rule, and a long rule is cut', (t) => {
  t.is(cutRule(text, 99), undefined);
  const long = `- key: k\n${'  # more\n'.repeat(200)}`;
  t.regex(cutRule(long, 1) ?? '', /# more\n# \.\.\. and 121 more lines$/);
});

test('lines are counted from the first line of the file, whatever the line breaks', (t) => {
  const find = (given: string, line: number) => runAtOnce(findingRuleLines(given, line));
  for (const each of [text, text.replaceAll('\n', '\r\n'), text.trimEnd()]) {
    t.like(find(each, 4), { first: 3, last: 9 });
    t.like(find(each, 11), { first: 11, last: 11 });
  }
  t.like(find('\n- a\n', 2), { first: 2, last: 2 });
  t.like(find('# c\n- a', 2), { first: 1, last: 2 });
  t.is(cutRule('# c\r\n- a:\r\n    b\r\n', 2), '# c\n- a:\n    b');
});
