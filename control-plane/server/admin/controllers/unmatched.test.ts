import test from 'ava';
import { runAtOnce } from '../../../../shared/in-slices.ts';
import { startAdminApi } from '../../../../test/support/admin-api.ts';
import { explainSamples } from './unmatched.ts';

const toSample = (value: string, lastAt: string) => ({
  ...{ domain: 'd', entries: [{ key: 'k', value }], samples: 1, lastAt },
});

test('many later samples of one control plane do not displace those of another', (t) => {
  const many = Array.from({ length: 50 }, (_, index) =>
    toSample(`${index}`, `2026-01-02T00:00:${10 + index}.000Z`),
  );
  const few = ['seldom', '0'].map((value) => toSample(value, '2026-01-01T00:00:00.000Z'));
  const samples = runAtOnce(explainSamples([many.toReversed(), few], new Map()));
  t.is(samples.length, 50);
  t.deepEqual(
    samples.slice(0, 3).map(({ entries }) => entries[0]?.value),
    ['49', 'seldom', '48'],
  );
  t.like(
    samples.find(({ entries }) => entries[0]?.value === '0'),
    {
      ...{ samples: 2, lastAt: '2026-01-02T00:00:10.000Z' },
      reason: 'there are no rules for the domain d',
    },
  );
});

test('a rule that has ended matches no sample', async (t) => {
  const rule = '{key: k, until: 2026-01-01T00:00:00Z, rate_limit: {unlimited: true}}';
  const { ask } = await startAdminApi(t, {
    files: { 'd.yaml': `domain: d\ndescriptors:\n  - {key: j}\n  - ${rule}\n` },
    fleet: { unmatched: () => [toSample('v', '2026-01-02T00:00:00.000Z')] },
  });
  const { samples } = (await ask('GET', '/unmatched')).body;
  t.like(samples, [{ reason: "no rule has the key 'k'" }]);
});
