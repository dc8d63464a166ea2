// Tests counting that stops when a request is refused; the stores' part is in their contract.
import test from 'ava';
import { ask, createWorker, summarize } from '../../test/support/decision-worker.ts';

const yaml = `
domain: d
descriptors:
  - {key: trial, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: real, rate_limit: {unit: day, requests_per_unit: 3}}
  - {key: one, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}
  - {key: two, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 3}}
  - {key: list, rate_limits: [{unit: day, requests_per_unit: 2}, {unit: hour, requests_per_unit: 100}]}
`;

async function decideTwice(
  times: number,
  descriptors: readonly string[],
  options: Parameters<typeof createWorker>[1] = {},
) {
  const worker = createWorker(yaml, { stopIncrementWhenOver: 'enforced', ...options });
  const answers: string[] = [];
  for (let time = 0; time < times; time++) {
    answers.push(summarize(await worker.decide(ask(...descriptors))));
  }
  return answers;
}

for (const localCacheBytes of [0, 1]) {
  const where = localCacheBytes === 0 ? 'by the store' : 'by the local cache';

  test(`a rule in shadow mode that is over its limit, ${where}, disables no enforced limit`, async (t) => {
    const answers = await decideTwice(5, ['trial=x', 'real=x'], { localCacheBytes });
    t.deepEqual(
      answers.map((answer) => answer.slice(0, 4)),
      ['OK [', 'OK [', 'OK [', 'OVER', 'OVER'],
    );
    // With `true`, as in the reference, it does.
    const before = await decideTwice(5, ['trial=x', 'real=x'], {
      localCacheBytes,
      stopIncrementWhenOver: 'true',
    });
    t.true(before.every((answer) => answer.startsWith('OK')));
  });

  test(`a limit that refuses, ${where}, prevents others from being counted`, async (t) => {
    const worker = createWorker(yaml, { stopIncrementWhenOver: 'enforced', localCacheBytes });
    for (let time = 0; time < 5; time++) await worker.decide(ask('list=x', 'real=x', 'trial=y'));
    t.is(summarize(await worker.decide(ask('real=x'))), 'OK [OK 0]', 'two were counted');
  });

  test(`quotas stop others when all of them are over, ${where}`, async (t) => {
    const worker = createWorker(yaml, { stopIncrementWhenOver: 'enforced', localCacheBytes });
    const answers: string[] = [];
    for (let time = 0; time < 5; time++) {
      answers.push(summarize(await worker.decide(ask('one=x', 'two=x', 'trial=x'))));
    }
    t.deepEqual(
      answers.map((answer) => answer.split(' ')[0]),
      ['OK', 'OK', 'OK', 'OVER', 'OVER'],
    );
    worker.useRules(yaml.replace('requests_per_unit: 3}}', 'requests_per_unit: 9}}'));
    t.regex(summarize(await worker.decide(ask('two=x'))), /^OVER \[OVER 0\]/);
  });
}

test('a quota in shadow mode is never over, so the others stop nothing', async (t) => {
  const worker = createWorker(yaml.replace('key: two,', 'key: two, shadow_mode: true,'), {
    stopIncrementWhenOver: 'enforced',
  });
  for (let time = 0; time < 5; time++) await worker.decide(ask('one=x', 'two=x', 'real=x'));
  t.is(summarize(await worker.decide(ask('real=x'))), 'OVER [OVER 0]', 'all were counted');
});

test('in global shadow mode nothing refuses, so everything is counted', async (t) => {
  const answers = await decideTwice(4, ['trial=x', 'list=x', 'real=x'], { shadowMode: true });
  t.is(answers.at(-1), 'OK [OK 0, OVER 0, OVER 0]');
});
