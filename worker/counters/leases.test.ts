import test from 'ava';
import fc from 'fast-check';
import type { Limiter } from '../../shared/rules/limit-shape.ts';
import { createHit, startCounting } from '../../test/support/counting.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { createRegistry } from '../metrics/registry.ts';
import { createLeases, type Leases } from './leases.ts';
import { createMemoryStore } from './memory-store.ts';
import type { CounterStore, Hit } from './store.ts';

const minute = 60;
const lease = { share: 0.05, forMs: 1_000 };

function setUp() {
  const clock = createManualClock();
  const log = createRecordedLog();
  const memory = createMemoryStore({ clock, log });
  let calls = 0;
  const store: CounterStore = {
    ...memory,
    count(request) {
      calls++;
      memory.count(request);
    },
  };
  const metrics = createRegistry({ runtimeNamesMax: 1, log });
  return {
    clock,
    memory,
    calls: () => calls,
    stat: (name: string) => metrics.snapshot().get(`ratelimit.lease.${name}`) ?? 0,
    createWorker: () => createLeases({ store, clock, metrics }),
  };
}

function hitOn(limit: number, hits = 1, algorithm?: Limiter['algorithm']): Hit {
  const limiter = algorithm && {
    algorithm,
    limit,
    capacity: limit,
    countsOver: false,
    windowStart: 1_000_000_000 - (1_000_000_000 % minute),
    windowSeconds: minute,
    isEven: true,
  };
  return createHit({
    key: 'k',
    hits,
    limit,
    windowSeconds: minute,
    lease,
    ...(limiter && { limiter }),
  });
}

/** Whether they were admitted. */
async function ask(leases: Leases, hit: Hit): Promise<boolean> {
  const { request, result } = startCounting([hit], { deadlineMs: Number.POSITIVE_INFINITY });
  leases.count(request);
  const { error } = await result;
  if (error !== undefined) throw error;
  return hit.after <= hit.limit;
}

test('nearly no decision on a hot counter is a call, and all of the limit is admitted', async (t) => {
  const { createWorker, calls } = setUp();
  const leases = createWorker();
  let admitted = 0;
  for (let index = 0; index < 11_000; index++) if (await ask(leases, hitOn(10_000))) admitted++;
  t.is(admitted, 10_000);
  // The last hundred, and the thousand that are over, are asked for one by one.
  t.true(calls() < 1_100 + 200, `${calls()} calls`);
});

test('what is not used is given back when its time is over, and when the worker stops', async (t) => {
  const { createWorker, memory, clock, stat } = setUp();
  const leases = createWorker();
  await ask(leases, hitOn(1_000));
  await ask(leases, hitOn(1_000));
  t.is(memory.read('k'), 1 + 49);
  t.is(stat('unused_hits'), 48);
  clock.advance(1_000);
  await new Promise(setImmediate);
  t.is(memory.read('k'), 2);
  t.is(stat('open'), 0);
  await ask(leases, hitOn(1_000));
  await ask(leases, hitOn(1_000));
  leases.close();
  await new Promise(setImmediate);
  t.is(memory.read('k'), 4);
});

test('the last hits are exact: no lease is taken when few remain', async (t) => {
  const { createWorker, memory } = setUp();
  const leases = createWorker();
  for (let index = 0; index < 9; index++) t.true(await ask(leases, hitOn(9)));
  t.is(memory.read('k'), 9);
  t.false(await ask(leases, hitOn(9)));
});

test('what remains is told as the store’s answer less what is used of the lease', async (t) => {
  const { createWorker } = setUp();
  const leases = createWorker();
  const remaining: number[] = [];
  for (let index = 0; index < 4; index++) {
    const hit = hitOn(1_000);
    await ask(leases, hit);
    remaining.push(hit.limit - hit.after);
  }
  t.deepEqual(remaining, [999, 998, 997, 996]);
});

test('refunds, and requests that only look, go to the store', async (t) => {
  const { createWorker, memory } = setUp();
  const leases = createWorker();
  await ask(leases, hitOn(1_000, 5));
  const refund = { ...hitOn(1_000, 2), refund: true };
  await ask(leases, refund);
  t.is(memory.read('k'), 3);
});

const anyStep = fc.record({
  worker: fc.nat(3),
  hits: fc.integer({ min: 1, max: 30 }),
  waitMs: fc.oneof(fc.constant(0), fc.nat(1_500)),
  isKilled: fc.integer({ min: 0, max: 30 }).map((number) => number === 0),
});

for (const algorithm of [undefined, 'sliding_window', 'token_bucket'] as const) {
  test(`whatever workers ask, stop or are killed, never more than the limit is admitted: ${algorithm ?? 'fixed_window'}`, async (t) => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 400 }),
        fc.array(anyStep, { minLength: 20, maxLength: 120 }),
        async (limit, steps) => {
          const { createWorker, clock } = setUp();
          const workers = Array.from({ length: 4 }, createWorker);
          const startMs = clock.monotonicMs();
          let admitted = 0;
          for (const { worker, hits, waitMs, isKilled } of steps) {
            // All in one window, of which 20 s are left.
            if (clock.monotonicMs() - startMs + waitMs < 20_000) clock.advance(waitMs);
            if (isKilled) workers[worker] = createWorker();
            if (await ask(workers[worker] as Leases, hitOn(limit, hits, algorithm)))
              admitted += hits;
          }
          const refilled =
            algorithm === 'token_bucket'
              ? ((clock.monotonicMs() - startMs) * limit) / (minute * 1_000)
              : 0;
          t.true(admitted <= limit + refilled, `${admitted} of ${limit}`);
        },
      ),
      { numRuns: 60 },
    );
  });
}
