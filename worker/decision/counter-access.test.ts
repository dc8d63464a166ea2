import test from 'ava';
import { AppError } from '../../shared/errors.ts';
import {
  buildRules,
  createWorker,
  defaults,
  ask as toRequest,
} from '../../test/support/decision-worker.ts';
import { withCount } from '../../test/support/with-count.ts';
import { createCounterAccess } from './counter-access.ts';

const rules = `
domain: d
descriptors:
  - {key: k, rate_limit: {unit: minute, requests_per_unit: 10}}
  - key: watched
    shadow_mode: true
    rate_limit: {unit: hour, requests_per_unit: 3, algorithm: sliding_window}
  - key: list
    rate_limits: [{unit: second, requests_per_unit: 2}, {unit: day, requests_per_unit: 9}]
  - {key: free, rate_limit: {unlimited: true}}
`;
const entry = (key: string) => [{ key, value: 'x' }];

/** An access to counters, and decisions on the same counters. */
function setUp({ hasRules = true, problem = '' } = {}) {
  const worker = createWorker(rules);
  const forgotten: string[] = [];
  const note = (mapKey: string) => void forgotten.push(mapKey);
  const access = createCounterAccess({
    rules: { current: hasRules ? buildRules(rules) : undefined },
    store: withCount(worker.memory, (call) =>
      problem === '' ? worker.memory.count(call) : call.settle(new AppError('store', problem)),
    ),
    leases: { forget: note },
    overLimitCache: undefined,
    clock: worker.clock,
    options: defaults,
  });
  const ask = (keys: readonly string[], reset = false, domain = 'd') =>
    access.ask({ domain, descriptors: keys.map(entry) }, reset, 1_000);
  return { worker, access, forgotten, ask };
}

test('the used hits of each limit are reported, in the order of the descriptors', async (t) => {
  const { worker, ask } = setUp();
  await worker.decide(toRequest({ of: 'k=x', hitsAddend: 4 }, 'watched=x', 'list=x'));
  t.deepEqual(await ask(['free', 'k', 'none', 'watched', 'list']), {
    ok: true,
    counters: [
      { descriptor: 0, problem: 'rule d.free is unlimited, so nothing is counted' },
      {
        ...{ descriptor: 1, rule: 'd.k', used: 4, limit: 10, window: 'minute' },
        ...{ secondsUntilReset: 45, shadowMode: false },
      },
      { descriptor: 2, problem: 'no rule of domain d matches (none=x)' },
      {
        ...{ descriptor: 3, rule: 'd.watched', used: 1, limit: 3, window: 'hour' },
        ...{ secondsUntilReset: 7_185, shadowMode: true },
      },
      {
        ...{ descriptor: 4, rule: 'd.list.second', used: 1, limit: 2, window: 'second' },
        ...{ secondsUntilReset: 1, shadowMode: false },
      },
      {
        ...{ descriptor: 4, rule: 'd.list.day', used: 1, limit: 9, window: 'day' },
        ...{ secondsUntilReset: 43_185, shadowMode: false },
      },
    ],
  });
});

test('reading counts nothing, and a reset sets the counter to 0', async (t) => {
  const { worker, forgotten, ask } = setUp();
  await worker.decide(toRequest({ of: 'k=x', hitsAddend: 4 }));
  for (let time = 1; time <= 2; time++) t.like(await ask(['k']), { counters: [{ used: 4 }] });
  t.deepEqual(forgotten, []);
  t.like(await ask(['k'], true), { counters: [{ used: 0 }] });
  t.is(forgotten.length, 1);
  t.like(await ask(['k']), { counters: [{ used: 0 }] });
});

test('where nothing is counted, the store is not asked', async (t) => {
  const { ask } = setUp({ problem: 'it is away' });
  t.deepEqual(await ask(['free'], false, 'e'), {
    ok: true,
    counters: [{ descriptor: 0, problem: 'there are no rules for domain e' }],
  });
  t.deepEqual(await ask(['free'], false, 'D'), {
    ok: true,
    counters: [{ descriptor: 0, problem: "there are no rules for domain D; did you mean 'd'?" }],
  });
  t.deepEqual(await ask(['k']), { ok: false, problem: 'it is away' });
});

test('before there are rules there is no answer', async (t) => {
  const { ask } = setUp({ hasRules: false });
  t.deepEqual(await ask(['k']), { ok: false, problem: 'there are no rules yet' });
});

test('a counter that another process has reset is forgotten here', (t) => {
  const { access, forgotten } = setUp();
  access.forget({ domain: 'd', descriptors: [entry('k'), entry('free'), entry('none')] });
  t.is(forgotten.length, 1);
});
