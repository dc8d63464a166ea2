import test from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { loadProtos } from '../../../shared/wire/protos.ts';
import { defaultMaxResponseBytes } from '../snapshot/build.ts';
import { Building } from '../snapshot/building.ts';
import { createExamine } from './examination.ts';

const examine = createExamine(
  new Building({
    encode: loadProtos().rateLimitConfig.serialize,
    options: { mergeDomains: false, maxResponseBytes: defaultMaxResponseBytes, advises: true },
    clock: systemClock,
  }),
);

const limit = 'rate_limit: {unit: hour, requests_per_unit: 1}';
const text = `domain: shop
descriptors:
  - {key: user, value: a*, share_threshold: true, ${limit}}
  - {key: path, detailed_metric: true, ${limit}}
`;

test('fields that other workers do not receive are named once, in addition to advice on the rules', async (t) => {
  const { problems, ruleSet } = await examine({
    files: [{ path: 'shop.yaml', text }],
    problems: [],
  });
  t.truthy(ruleSet);
  t.deepEqual(
    problems.map(({ severity, message }) => [severity, message.split(' ', 3).join(' ')]),
    [
      ['note', 'share_threshold of domain'],
      ['note', 'detailed_metric makes a'],
    ],
  );
});

test('comments in files allow the problems that they name, and one without effect is noted', async (t) => {
  const commented = `# ratelane: allow unbounded-metric, worker-only-field, no-limit\n${text}`;
  const { problems } = await examine({
    files: [{ path: 'shop.yaml', text: commented }],
    problems: [],
  });
  t.deepEqual(
    problems.map(({ severity, message }) => [severity, message]),
    [['note', "this comment allows 'no-limit', which does not occur here"]],
  );
});
