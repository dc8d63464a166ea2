import test from 'ava';
import type { Entry } from '../../shared/rules/rule.ts';
import { createStubMetrics } from '../../test/support/stub-metrics.ts';
import { createUnmatchedSampler, type UnmatchedSample } from './unmatched-sampler.ts';

function setUp() {
  const samples: UnmatchedSample[] = [];
  const metrics = createStubMetrics();
  const sampler = createUnmatchedSampler(metrics, (sample) => samples.push(sample));
  const ask = (domain: string, entries: readonly Entry[], nowSeconds = 1_700_000_000) => {
    const descriptor = { entries, limit: undefined, hitsAddend: undefined, isNegativeHits: false };
    sampler.unknownDomain({ domain, hitsAddend: 0, descriptors: [descriptor] }, nowSeconds);
    return samples.at(-1);
  };
  return { metrics, sampler, samples, ask };
}

test('at most twenty requests are sampled in each second', (t) => {
  const { samples, ask } = setUp();
  for (let time = 1; time <= 25; time++) ask('d', []);
  t.is(samples.length, 20);
  for (let time = 1; time <= 25; time++) ask('d', [], 1_700_000_001);
  t.is(samples.length, 40);
  t.is(samples.at(-1)?.atSeconds, 1_700_000_001);
});

test('a sample has at most 16 entries of 128 characters, and is marked when it was cut', (t) => {
  const { ask } = setUp();
  const longest = 'x'.repeat(128);
  const entry = { key: longest, value: longest };
  const full = new Array<Entry>(16).fill(entry);
  t.deepEqual(ask(longest, full), {
    domain: longest,
    entries: full,
    isCut: false,
    atSeconds: 1_700_000_000,
  });
  t.like(ask(`${longest}y`, []), { domain: longest, isCut: true });
  t.like(ask('d', [{ key: `${longest}y`, value: '' }]), { isCut: true });
  t.deepEqual(ask('d', [entry, { key: 'k', value: `${longest}y` }]), {
    domain: 'd',
    entries: [entry, { key: 'k', value: longest }],
    isCut: true,
    atSeconds: 1_700_000_000,
  });
  const cut = ask('d', [...full, entry]);
  t.true(cut?.isCut);
  t.is(cut?.entries.length, 16);
});
