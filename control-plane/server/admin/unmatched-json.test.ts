import test from 'ava';
import { mergeUnmatched } from './unmatched-json.ts';

const toSample = (value: string, lastAt: string) => ({
  domain: 'd',
  entries: [{ key: 'k', value }],
  samples: 1,
  lastAt,
  reason: 'r',
  hint: null,
  nearest: null,
});

test('many later samples of one control plane do not displace those of another', (t) => {
  const many = Array.from({ length: 50 }, (_, index) =>
    toSample(`${index}`, `2026-01-02T00:00:${10 + index}.000Z`),
  );
  const few = ['seldom', '0'].map((value) => toSample(value, '2026-01-01T00:00:00.000Z'));
  const { samples } = mergeUnmatched([{ samples: many.toReversed() }, { samples: few }]);
  t.is(samples.length, 50);
  t.is(samples[0]?.entries[0]?.value, '49');
  t.is(samples.at(-1)?.entries[0]?.value, 'seldom');
  t.like(
    samples.find(({ entries }) => entries[0]?.value === '0'),
    { samples: 2, lastAt: '2026-01-02T00:00:10.000Z' },
  );
});
