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

test('what other workers do not get is said once, beside advice on the rules', (t) => {
  const { problems, ruleSet } = examine({ files: [{ path: 'shop.yaml', text }], problems: [] });
  t.truthy(ruleSet);
  t.deepEqual(
    problems.map(({ severity, message }) => [severity, message.split(' ', 3).join(' ')]),
    [
      ['warning', 'share_threshold of domain'],
      ['warning', 'detailed_metric makes a'],
    ],
  );
});
