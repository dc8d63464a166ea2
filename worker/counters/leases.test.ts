import test from 'ava';
import fc from 'fast-check';
import type { Lease, Limiter } from '../../shared/rules/limit-shape.ts';
import { createHit, startCounting } from '../../test/support/counting.ts';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../test/support/recorded-log.ts';
import { withCount } from '../../test/support/with-count.ts';
import { createRegistry } from '../metrics/registry.ts';
import { Leases } from './leases.ts';
import { MemoryStore } from './memory-store.ts';
import type { CountRequest, Hit } from './store.ts';

const minute = 60;
const lease = { share: 0.05, forMs: 1_000 };

function setUp() {
  const clock = createManualClock();
  const log = createRecordedLog();
  const memory = new MemoryStore({ clock, log });
  let calls = 0;
  const store = withCount(memory, (request) => {
    calls++;
    memory.count(request);
  });
  const metrics = createRegistry({ runtimeNamesMax: 1, log });
  return {
    clock,
    memory,
    calls: () => calls,
    stat: (name: string) => metrics.snapshot().get(`ratelimit.lease.${name}`) ?? 0,
    createWorker: () => new Leases({ store, clock, metrics }),
  };
}

function hitOn(
  limit: number,
  hits = 1,
  algorithm?: Limiter['algorithm'],
  options: Partial<Limiter & { lease: Lease; refund: boolean }> = {},
): Hit {
  const { capacity = limit, countsOver = false, refund = false } = options;
  const limiter = algorithm && {
    algorithm,
    limit,
    capacity,
    countsOver,
    windowStart: 1_000_000_000 - (1_000_000_000 % minute),
    windowSeconds: minute,
    isEven: true,
  };
  return createHit({
    key: 'k',
    hits,
    limit: capacity,
    refund,
    windowSeconds: minute,
    lease: options.lease ?? lease,
    ...(limiter && { limiter }),
  });
}

/** Whether the hits were admitted. */
async function ask(leases: Pick<Leases, 'count'>, hit: Hit): Promise<boolean> {
  const { request, result } = startCounting([hit], { deadlineMs: Number.POSITIVE_INFINITY });
  leases.count(request);
  const { error } = await result;
  if (error !== undefined) throw error;
  return hit.after <= hit.limit;
}

test('few decisions on a hot counter call the store, and the whole limit is admitted', async (t) => {
  const { createWorker, calls } = setUp();
  const leases = createWorker();
  let admitted = 0;
  for (let index = 0; index < 11_000; index++) if (await ask(leases, hitOn(10_000))) admitted++;
  t.is(admitted, 10_000);
  // The last hundred hits, and the thousand over the limit, each need a call.
  t.true(calls() < 1_100 + 200, `${calls()} calls`);
});

test('unused hits of a lease are returned when the lease ends, and when the worker stops', async (t) => {
  const { createWorker, memory, clock, stat } = setUp();
  const leases = createWorker();
  await ask(leases, hitOn(1_000));
  await ask(leases, hitOn(1_000));
  t.is(memory.read('k'), 1 + 49);
  t.is(stat('unused_hits'), 48);
  t.is(stat('open'), 1);
  t.is(stat('decisions'), 0, 'the one that took it was asked for');
  await ask(leases, hitOn(1_000));
  t.is(stat('decisions'), 1);
  t.is(stat('unused_hits'), 47);
  clock.advance(1_000);
  await new Promise(setImmediate);
  t.is(memory.read('k'), 3);
  t.is(stat('open'), 0);
  await ask(leases, hitOn(1_000));
  await ask(leases, hitOn(1_000));
  leases.close();
  await new Promise(setImmediate);
  t.is(memory.read('k'), 5);
});

test('the last hits are exact: no lease is taken when few remain', async (t) => {
  const { createWorker, memory } = setUp();
  const leases = createWorker();
  for (let index = 0; index < 9; index++) t.true(await ask(leases, hitOn(9)));
  t.is(memory.read('k'), 9);
  t.false(await ask(leases, hitOn(9)));
  const window = setUp().createWorker();
  const sliding = (hits: number) => ask(window, hitOn(100, hits, 'sliding_window'));
  // The third request uses the lease of the second one, and all that is left.
  for (const hits of [1, 1, 98]) t.true(await sliding(hits));
  t.false(await sliding(1));
});

test('a lease is taken when at least 10 hits and 1 % of the limit remain, and not below', async (t) => {
  const leasedFrom = async (limit: number, used: number) => {
    const { createWorker, memory } = setUp();
    const leases = createWorker();
    const options = { lease: { share: 0.5, forMs: 1_000 } };
    await ask(leases, hitOn(limit, used, undefined, options));
    await ask(leases, hitOn(limit, 1, undefined, options));
    return Number(memory.read('k')) - used;
  };
  t.is(await leasedFrom(100, 90), 5);
  t.is(await leasedFrom(100, 91), 1);
  t.is(await leasedFrom(10_000, 9_900), 50);
  t.is(await leasedFrom(10_000, 9_901), 1);
});

test('a request beyond the lease takes only the missing hits from the store, or the next lease', async (t) => {
  const { createWorker, memory } = setUp();
  const leases = createWorker();
  await ask(leases, hitOn(1_000));
  await ask(leases, hitOn(1_000));
  t.is(memory.read('k'), 1 + 49, '48 are left of the lease');
  t.true(await ask(leases, hitOn(1_000, 60)));
  t.is(memory.read('k'), 50 + 47, 'a twentieth of what is left is more than the 12 that lack');
  t.true(await ask(leases, hitOn(1_000, 200)));
  t.is(memory.read('k'), 97 + (200 - 35));
});

test('the remaining hits are the answer of the store minus the hits used from the lease', async (t) => {
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

test('refunds and peeks go to the store', async (t) => {
  const { createWorker, memory } = setUp();
  const leases = createWorker();
  await ask(leases, hitOn(1_000, 5));
  const refund = { ...hitOn(1_000, 2), refund: true };
  await ask(leases, refund);
  t.is(memory.read('k'), 3);
});

test('hits taken in one sliding window are neither used nor returned in the next', async (t) => {
  const { createWorker, memory, clock } = setUp();
  const leases = createWorker();
  const long = { lease: { share: 0.05, forMs: 6_000 } };
  const next = () => hitOn(1_000, 1, 'sliding_window', long);
  const used = async () => {
    const peek = hitOn(1_000, 0, 'sliding_window');
    await ask(memory, peek);
    return peek.after;
  };
  clock.advance(13_900);
  await ask(leases, next());
  await ask(leases, next());
  t.is(await used(), 1 + 49);
  // The worker is stalled over the end of the window, in which another one has counted 300.
  const others = ask(memory, hitOn(1_000, 300, 'sliding_window'));
  clock.stall(6_100);
  await others;
  await ask(leases, next());
  await new Promise(setImmediate);
  t.true((await used()) >= 300 + 1 + 49, `${await used()}`);
  // No lease is taken that could not be returned before the end of its window.
  clock.advance(60_000 - 6_000);
  const before = await used();
  for (let count = 1; count <= 4; count++) {
    await ask(leases, next());
    t.is(await used(), before + count);
  }
});

for (const left of [8, 1]) {
  test(`a lease of a bucket, with ${left} of 9 left, never holds more than the bucket has room for`, async (t) => {
    const { createWorker, clock } = setUp();
    const leases = createWorker();
    // 20 tokens, 10 a second.
    const options = { capacity: 20, lease: { share: 0.5, forMs: 6_000 } };
    const next = () => hitOn(600, 1, 'token_bucket', options);
    await ask(leases, next());
    for (let count = 9; count > left; count--) await ask(leases, next());
    // Meanwhile the bucket is full again.
    clock.advance(2_000);
    let admitted = 0;
    for (let index = 0; index < 60; index++) if (await ask(leases, next())) admitted++;
    t.is(admitted, 20);
  });
}

test('a bucket at its lowest level is not returned hits that it never counted', async (t) => {
  const { createWorker, memory } = setUp();
  const leases = createWorker();
  const options = { countsOver: true, lease: { share: 0.5, forMs: 1_000 } };
  await ask(leases, hitOn(100, 1, 'token_bucket', options));
  for (const hits of [100, 85]) await ask(memory, hitOn(100, hits, 'token_bucket', options));
  t.false(await ask(leases, hitOn(100, 1, 'token_bucket', options)));
  const peek = hitOn(100, 0, 'token_bucket', options);
  await ask(memory, peek);
  t.true(peek.after >= 187, `${peek.after}`);
});

for (const algorithm of ['sliding_window', 'token_bucket'] as const) {
  test(`the reset of a ${algorithm} is that of the last lease, however often it was renewed`, async (t) => {
    const { createWorker, memory, clock } = setUp();
    const leases = createWorker();
    for (let second = 0; second < 15; second++) {
      for (let index = 0; index < 40; index++) await ask(leases, hitOn(1_000, 1, algorithm));
      clock.advance(900);
    }
    const hit = hitOn(1_000, 1, algorithm);
    await ask(leases, hit);
    const peek = hitOn(1_000, 0, algorithm);
    await ask(memory, peek);
    const resetOf = ({ limiter }: typeof hit) => limiter?.resetSeconds ?? 0;
    t.true(Math.abs(resetOf(hit) - resetOf(peek)) <= 3, `${resetOf(hit)}`);
  });
}

for (const algorithm of ['sliding_window', 'token_bucket'] as const) {
  test(`${algorithm}: a lease that no longer fits because of another worker is not used at all`, async (t) => {
    const { createWorker, memory } = setUp();
    const leases = createWorker();
    const next = () => hitOn(100, 1, algorithm, { lease: { share: 0.5, forMs: 1_000 } });
    let admitted = 0;
    for (let index = 0; index < 2; index++) if (await ask(leases, next())) admitted++;
    t.true(await ask(memory, hitOn(100, 45, algorithm)));
    for (let index = 0; index < 100; index++) if (await ask(leases, next())) admitted++;
    t.is(admitted, 55);
  });
}

test('a reset also drops a lease that is just being taken', async (t) => {
  const { createWorker, memory } = setUp();
  const leases = createWorker();
  await ask(leases, hitOn(1_000));
  await ask(leases, hitOn(1_000));
  const leasing = ask(leases, hitOn(1_000, 60));
  const resetting = ask(memory, hitOn(1_000, 2 ** 52, undefined, { refund: true }));
  leases.forget('k');
  await leasing;
  await resetting;
  let admitted = 0;
  for (let index = 0; index < 1_500; index++) if (await ask(leases, hitOn(1_000))) admitted++;
  t.is(admitted, 1_000);
});

test('hits of a lease are not returned to a counter that was reset', async (t) => {
  const { createWorker, memory, clock } = setUp();
  const leases = createWorker();
  await ask(leases, hitOn(1_000));
  await ask(leases, hitOn(1_000));
  await ask(memory, hitOn(1_000, 2 ** 52, undefined, { refund: true }));
  leases.forget('k');
  await ask(memory, hitOn(1_000, 100));
  clock.advance(1_000);
  await new Promise(setImmediate);
  t.is(memory.read('k'), 100);
});

test('hits of a lease that arrive after the worker’s stop has begun are returned', async (t) => {
  const { createWorker, memory } = setUp();
  const leases = createWorker();
  await ask(leases, hitOn(1_000));
  const leasing = ask(leases, hitOn(1_000));
  leases.close();
  await leasing;
  await new Promise(setImmediate);
  t.is(memory.read('k'), 2);
});

test('a lease that ends while the store is silent waits without a busy timer', async (t) => {
  const clock = createManualClock();
  let timers = 0;
  const waiting: CountRequest[] = [];
  const leases = new Leases({
    store: withCount(new MemoryStore({ clock, log: createRecordedLog() }), (r) => waiting.push(r)),
    clock: {
      ...clock,
      after(delayMs, run) {
        return ++timers > 100 ? () => {} : clock.after(delayMs, run);
      },
    },
    metrics: createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() }),
  });
  leases.count(startCounting([hitOn(1_000)]).request);
  const [asked] = waiting as [CountRequest];
  (asked.hits[0] as Hit).after = 1;
  asked.settle(undefined);
  leases.count(startCounting([hitOn(1_000)]).request);
  for (let ms = 0; ms < 3_000; ms++) clock.advance(1);
  t.true(timers <= 5, `${timers} timers`);
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
            // All in one window, of which 20 s remain.
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
