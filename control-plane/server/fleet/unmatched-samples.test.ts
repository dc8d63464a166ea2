import test from 'ava';
import { UnmatchedSamples } from './unmatched-samples.ts';

const link = {};
const sample = (value: string) => ({ domain: 'd', entries: [{ key: 'k', value }] });

test('the same descriptor is listed once, with how often it was sampled, the last ones first', (t) => {
  const samples = new UnmatchedSamples();
  samples.add(link, [sample('a'), sample('b')], 1);
  samples.add(link, [sample('a')], 2);
  t.deepEqual(
    samples
      .read()
      .map(({ entries, samples, lastAt }) => [...[entries[0]?.value, samples, Date.parse(lastAt)]]),
    [
      ['a', 2, 2],
      ['b', 1, 1],
    ],
  );
});

test('samples that workers report take bounded memory', (t) => {
  const samples = new UnmatchedSamples();
  const long = 'x'.repeat(1_000);
  for (let report = 0; report < 100; report++) {
    const reported = Array.from({ length: 50 }, (_, index) => sample(`${report}-${index}-${long}`));
    samples.add(link, reported, report);
  }
  const many = {
    domain: long,
    entries: Array.from({ length: 1_000 }, () => sample('v').entries[0]),
  };
  samples.add(link, [many as never], 100);
  const all = samples.read();
  t.is(all.length, 200);
  t.is(all[0]?.entries.length, 32);
  t.is(all[0]?.domain.length, 128);
  t.is(all[1]?.entries[0]?.value.length, 128);
});

test('a link that reports without end takes no sample of another link, and its own last ones are kept', (t) => {
  const samples = new UnmatchedSamples();
  const [flooding, innocent] = [{}, {}];
  samples.add(innocent, [sample('seldom')], 1);
  for (let report = 0; report < 100; report++) {
    const many = Array.from({ length: 20 }, (_, index) => sample(`${report}-${index}`));
    samples.add(flooding, many, 2);
  }
  samples.add(innocent, [sample('later')], 3);
  const values = samples.read().map(({ entries }) => entries[0]?.value);
  t.is(values.length, 200);
  // Only the first ones are shown.
  t.deepEqual(values.slice(0, 4), ['later', '99-19', '99-18', 'seldom']);
  t.is(values.at(-1), '90-2');
});
