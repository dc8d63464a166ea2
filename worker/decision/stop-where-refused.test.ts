// How the store is asked to count if only a refusal stops counting; what is counted then is in
// scenarios/stop-where-refused.txt, the stores' part in their contract.
import test from 'ava';
import { ask, createWorker } from '../../test/support/decision-worker.ts';

test('rules that never refuse are counted without reading other counters first', async (t) => {
  const modes: unknown[] = [];
  const rule = '{key: k, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 1}}';
  const { decide } = createWorker(`domain: d\ndescriptors: [${rule}]\n`, {
    stopIncrementWhenOver: 'enforced',
    store: (inner) => ({
      ...inner,
      count(request) {
        modes.push(request.mode);
        inner.count(request);
      },
    }),
  });
  await decide(ask('k=x', 'k=y'));
  t.deepEqual(modes, ['add']);
});
