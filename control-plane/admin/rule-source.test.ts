import test from 'ava';
import { cutRule } from './rule-source.ts';

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

test('a rule is cut out with the comments above it and the rules below it', (t) => {
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

test('a line that the file does not have is no rule, and a long one is cut', (t) => {
  t.is(cutRule(text, 99), undefined);
  const long = `- key: k\n${'  # more\n'.repeat(200)}`;
  t.regex(cutRule(long, 1) ?? '', /# more\n# \.\.\. and 121 more lines$/);
});
