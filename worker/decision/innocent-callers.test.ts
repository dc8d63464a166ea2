// Floods of descriptors beside an innocent caller: other callers reach each bound of the memory that decisions use, and
// this caller is still decided (SECURITY.md, "What is bounded").
import test from 'ava';
import { ask, createWorker, summarize } from '../../test/support/decision-worker.ts';

const flood = 3_000;
const rules = `
domain: d
descriptors:
  - {key: innocent, rate_limit: {unit: hour, requests_per_unit: 3}}
  - {key: flood, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: refused, rate_limit: {unit: hour, requests_per_unit: 0}}
`;

// Proof of SECURITY.md: cannot change the limits of others by floods of names, keys or values
test('endless metric names of one caller leave those of a rule to other callers', async (t) => {
  const worker = createWorker(rules);
  await worker.decide(ask('innocent=ann'));
  for (let index = 0; index < flood; index++) await worker.decide(ask(`flood=${index}`));
  await worker.decide(ask('innocent=ann'));
  t.is(worker.stat('rate_limit.d.innocent.total_hits'), 2);
  t.is(worker.stat('rate_limit.d.innocent.within_limit'), 2);
});

// Proof of SECURITY.md: cannot change the limits of others by floods of names, keys or values
test('requests without a rule take the samples, but not the counts of another caller, nor its sample a second later', async (t) => {
  const worker = createWorker(rules);
  for (let index = 0; index < flood; index++) await worker.decide(ask(`unknown=${index}`));
  const sampled = worker.samples.length;
  t.true(sampled > 0 && sampled <= 20);
  t.is(summarize(await worker.decide(ask('innocents=typo'))), 'OK [OK 0]');
  t.is(worker.stat('no_match.d'), flood + 1);
  worker.clock.advance(1_000);
  await worker.decide(ask('innocents=typo'));
  t.is(worker.samples.length, sampled + 1);
});

// Proof of SECURITY.md: cannot change the limits of others by floods of names, keys or values
test('keys over their limit that fill the cache change no decision about another caller', async (t) => {
  const worker = createWorker(rules, { localCacheBytes: 1 });
  for (let index = 0; index < 3; index++) await worker.decide(ask('innocent=ann'));
  t.is(summarize(await worker.decide(ask('innocent=ann'))), 'OVER [OVER 0]');
  const filling = 'x'.repeat(200);
  for (let index = 0; index < flood; index++) {
    await worker.decide(ask(`refused=${filling}${index}`));
  }
  t.is(summarize(await worker.decide(ask('innocent=ann'))), 'OVER [OVER 0]', 'still refused');
  t.is(summarize(await worker.decide(ask('innocent=bob'))), 'OK [OK 2]', 'still admitted');
});

// Proof of SECURITY.md: cannot change the limits of others by floods of names, keys or values
test('counters of one caller that use up the room leave existing ones and their limits in force', async (t) => {
  const worker = createWorker(rules, { maxCounters: 1_000 });
  await worker.decide(ask('innocent=ann'));
  let failed = 0;
  for (let index = 0; index < flood; index++) {
    if (!(await worker.decide(ask(`flood=${index}`))).ok) failed++;
  }
  t.is(failed, flood - 999);
  for (const expected of ['OK [OK 1]', 'OK [OK 0]', 'OVER [OVER 0]'])
    t.is(summarize(await worker.decide(ask('innocent=ann'))), expected);
});
