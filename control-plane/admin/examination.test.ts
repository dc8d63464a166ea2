import test from 'ava';
import { loadProtos } from '../../shared/wire/protos.ts';
import { defaultMaxResponseBytes } from '../snapshot/build.ts';
import { createExamine } from './examination.ts';

const examine = createExamine({
  encode: loadProtos().rateLimitConfig.serialize,
  options: { mergeDomains: false, maxResponseBytes: defaultMaxResponseBytes },
});

const limit = 'rate_limit: {unit: hour, requests_per_unit: 1}';
const text = `domain: shop
descriptors:
  - {key: user, value: a*, share_threshold: true, ${limit}}
  - {key: path, detailed_metric: true, ${limit}}
`;

test('fields that other workers do not get are named once, beside advice on the rules', (t) => {
  const { problems, ruleSet } = examine({ files: [{ path: 'shop.yaml', text }], problems: [] });
  t.truthy(ruleSet);
  t.deepEqual(
    problems.map(({ severity, message }) => [severity, message.split(' ', 3).join(' ')]),
    [
      ['note', 'share_threshold of domain'],
      ['note', 'detailed_metric makes a'],
    ],
  );
});

test('comments in files allow what they name, and one that allows nothing is noted', (t) => {
  const commented = `# ratelane: allow unbounded-metric, worker-only-field, no-limit\n${text}`;
  const { problems } = examine({ files: [{ path: 'shop.yaml', text: commented }], problems: [] });
  t.deepEqual(
    problems.map(({ severity, message }) => [severity, message]),
    [['note', "this comment allows 'no-limit', which does not occur here"]],
  );
});
