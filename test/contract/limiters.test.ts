// Tests sliding windows and token buckets against a simple model, with a manual clock: in process through the store,
// and in Redis through the real scripts, except that their clock is replaced.
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';
import { type Limiter, limiterAlgorithms } from '../../shared/rules/limit-shape.ts';
import { openLimiterCounter } from '../../worker/counters/limiter.ts';
import { MemoryStore } from '../../worker/counters/memory-store.ts';
import { limiterScripts, toArguments } from '../../worker/counters/redis/limiter-scripts.ts';
import type { CounterStore, Hit, LimiterHit, LimiterWindow } from '../../worker/counters/store.ts';
import { settleLimiterHit } from '../../worker/counters/store.ts';
import { type CountOutcome, countOn, createHit, type startCounting } from '../support/counting.ts';
import { findTool } from '../support/installed-tool.ts';
import { createLimiterModel } from '../support/limiter-model.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { ownedByFile } from '../support/owner.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { type RedisReply, type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { openRedisStore } from '../support/redis-store.ts';

const owner = ownedByFile(test);
const redis = startRedisServer(owner);
const valkeyProgram = findTool('valkey-server');
const valkey =
  valkeyProgram === undefined ? undefined : startRedisServer(owner, { program: valkeyProgram });

/** The hits of one moment. */
interface Step {
  readonly afterMs: number;
  /** The difference between the worker's clock and the store's. */
  readonly skewMs: number;
  /** Whether the store has dropped the counter. */
  readonly isEvicted: boolean;
  /** A negative number is a refund. */
  readonly hits: readonly number[];
}

/** Counts the hits of one moment, and returns the result of each. */
type CountAll = (limiter: Limiter, windowSeconds: number, step: Step) => Promise<Hit[]>;

const limiters = fc
  .record({
    algorithm: fc.constantFrom(...limiterAlgorithms),
    limit: fc.integer({ min: 1, max: 40 }),
    burst: fc.integer({ min: 1, max: 60 }),
    countsOver: fc.boolean(),
  })
  .map(
    ({ burst, ...limiter }): Limiter => ({
      ...limiter,
      capacity: limiter.algorithm === 'token_bucket' ? burst : limiter.limit,
    }),
  );
const steps = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 900 }), fc.nat(9_000)),
    skewMs: fc.oneof(fc.constant(0), fc.integer({ min: -100_000, max: 100_000 })),
    isEvicted: fc.nat(9).map((number) => number === 0),
    hits: fc.array(
      fc.oneof(
        { weight: 5, arbitrary: fc.integer({ min: -5, max: 12 }) },
        { weight: 5, arbitrary: fc.constant(1) },
        { weight: 1, arbitrary: fc.constantFrom(4_294_967_295, -4_294_967_295) },
      ),
      { maxLength: 12 },
    ),
  }),
  { minLength: 1, maxLength: 12 },
);

function toWindow(limiter: Limiter, windowSeconds: number, nowMs: number): LimiterWindow {
  const windowStart = Math.floor(nowMs / 1000 / windowSeconds) * windowSeconds;
  return { ...limiter, windowSeconds, windowStart, isEven: true };
}

function toHit(limiter: LimiterWindow, hits: number): Hit {
  const { capacity: limit, windowSeconds } = limiter;
  return createHit({
    key: 'k',
    hits: Math.abs(hits),
    refund: hits < 0,
    limit,
    windowSeconds,
    limiter,
  });
}

const windowMs = 3_000;

/** Fails where a decision differs from the model's. */
async function compare(
  t: ExecutionContext,
  limiter: Limiter,
  list: readonly Step[],
  clock: { advance(ms: number): void; wallMs(): number },
  countAll: CountAll,
): Promise<void> {
  const windowSeconds = windowMs / 1000;
  let model = createLimiterModel(limiter, windowSeconds * 1000);
  for (const step of list) {
    const { afterMs, hits, isEvicted } = step;
    clock.advance(afterMs);
    const nowMs = clock.wallMs();
    if (isEvicted) model = createLimiterModel(limiter, windowSeconds * 1000);
    const counted = await countAll(limiter, windowSeconds, step);
    for (const [index, hit] of counted.entries()) {
      const asked = hits[index] as number;
      if (asked < 0) model.giveBack(-asked, nowMs);
      const isOver = asked >= 0 && model.count(asked, nowMs);
      const after = limiter.capacity - model.room(nowMs);
      const isCounted = !isOver || limiter.countsOver;
      t.is(hit.after, isCounted ? after : after + asked, JSON.stringify({ limiter, list, index }));
      t.is(asked >= 0 && hit.after > hit.limit, isOver);
      t.true((hit.limiter?.resetSeconds ?? 0) >= 1);
    }
  }
}

test('in process, each decision is the model’s', async (t) => {
  await fc.assert(
    fc.asyncProperty(limiters, steps, async (limiter, given) => {
      const clock = createManualClock();
      const store = new MemoryStore({ clock, log: createRecordedLog() });
      // There is a single clock, and no counter is dropped.
      const list = given.map((step) => ({ ...step, isEvicted: false }));
      await compare(t, limiter, list, clock, async (_, windowSeconds, step) => {
        const window = toWindow(limiter, windowSeconds, clock.wallMs());
        const hits = step.hits.map((number) => toHit(window, number));
        const outcomes = hits.map((hit) =>
          count(store, hit, { deadlineMs: Number.POSITIVE_INFINITY }),
        );
        for (const outcome of outcomes) t.is((await outcome).error, undefined);
        return hits;
      });
      await store.close();
    }),
    { numRuns: 300 },
  );
});

test('in Redis, each decision is the model’s', async (t) => {
  const server = await redis;
  await fc.assert(
    fc.asyncProperty(limiters, steps, async (limiter, list) => {
      let nowMs = 1_700_000_000_000;
      const clock = { advance: (ms: number) => (nowMs += ms), wallMs: () => nowMs };
      await server.command('DEL', 'k');
      await compare(t, limiter, list, clock, async (_, windowSeconds, step) => {
        const window = toWindow(limiter, windowSeconds, nowMs + step.skewMs);
        if (step.isEvicted) await server.command('DEL', 'k');
        return countInRedis(server, 'k', window, nowMs, step.hits);
      });
    }),
    { numRuns: 150 },
  );
});

/** Runs the real script, except that the clock it reads is replaced. */
async function countInRedis(
  server: RedisServer,
  key: string,
  window: LimiterWindow,
  nowMs: number,
  numbers: readonly number[],
): Promise<Hit[]> {
  const text = limiterScripts[window.algorithm].text.replace(
    "redis.call('TIME')",
    '{tonumber(KEYS[2]), tonumber(KEYS[3])}',
  );
  const reply = await server.command(
    'EVAL',
    text,
    3,
    key,
    Math.floor(nowMs / 1000),
    (nowMs % 1000) * 1000,
    ...toArguments(window),
    100_000,
    ...toRuns(numbers),
  );
  const counter = openLimiterCounter(window, (reply as RedisReply[]).map(Number));
  const hits = numbers.map((number) => toHit(window, number));
  for (const hit of hits) settleLimiterHit(counter, hit, hit.limiter as LimiterHit, hit.hits);
  return hits;
}

/** What happens to a counter before the final request: hits, a different limit, a changed clock. */
const histories = fc.record({
  algorithm: fc.constantFrom(...limiterAlgorithms),
  steps: fc.array(
    fc.record({
      limit: fc.constantFrom(1, 2, 7, 60, 3_600),
      burst: fc.constantFrom(1, 3, 50),
      countsOver: fc.boolean(),
      /** Shifts the grid of windows, as another reset day of weeks does. */
      shiftSeconds: fc.constantFrom(0, 0, 1),
      forMs: fc.oneof(fc.nat(5_000), fc.integer({ min: -600_000, max: 0 })),
      hits: fc.integer({ min: 0, max: 60 }),
    }),
    { minLength: 1, maxLength: 8 },
  ),
});

for (const store of ['in process', 'in Redis'] as const) {
  test(`${store}, whatever happens to limit and clock, hits are refused for as long as their reset time states`, async (t) => {
    const server = await redis;
    await fc.assert(
      fc.asyncProperty(histories, async ({ algorithm, steps: history }) => {
        const clock = createManualClock(1_700_000_000_000);
        const memory = new MemoryStore({ clock, log: createRecordedLog() });
        if (store === 'in Redis') await server.command('DEL', 'history');
        let last = history[0] as (typeof history)[number];
        const countOne = async (number: number) => {
          const { limit, burst, countsOver, shiftSeconds } = last;
          const capacity = algorithm === 'token_bucket' ? burst : limit;
          const limiter = { algorithm, limit, capacity, countsOver };
          const nowMs = clock.wallMs();
          const window = toWindow(limiter, windowMs / 1000, nowMs - shiftSeconds * 1000);
          const shifted = { ...window, windowStart: window.windowStart + shiftSeconds };
          if (store === 'in Redis')
            return (await countInRedis(server, 'history', shifted, nowMs, [number]))[0];
          const hit = toHit(shifted, number);
          await count(memory, hit, { deadlineMs: Number.POSITIVE_INFINITY });
          return hit;
        };
        for (last of history) {
          if (last.forMs < 0) clock.setWall(clock.wallMs() + last.forMs);
          else clock.advance(last.forMs);
          await countOne(last.hits);
        }
        last = { ...last, countsOver: false };
        const refused = await countOne(1);
        if (refused === undefined || refused.after <= refused.limit) return;
        const reset = refused.limiter?.resetSeconds ?? 0;
        clock.advance((reset - 1) * 1000);
        const early = await countOne(1);
        clock.advance(1000);
        const late = await countOne(1);
        const isOver = (hit: Hit | undefined) => hit !== undefined && hit.after > hit.limit;
        if (reset > 1 && !isOver(early)) throw new Error(`admitted before ${reset} s`);
        if (isOver(late) && isOver(early)) throw new Error(`refused after ${reset} s`);
        // Two windows, or the time to fill a bucket from its lowest possible level.
        const most = algorithm === 'token_bucket' ? (2 * last.burst * 3) / last.limit : 6;
        if (reset > Math.ceil(most)) throw new Error(`${reset} s are more than ${most}`);
      }),
      { numRuns: 300 },
    );
    t.pass();
  });
}

function count(
  store: CounterStore,
  hit: Hit,
  options: Parameters<typeof startCounting>[1] = {},
): Promise<CountOutcome> {
  return countOn(store, [hit], options);
}

function toRuns(numbers: readonly number[]): number[] {
  const runs: number[] = [];
  for (const number of numbers) {
    if (runs.length > 0 && runs[runs.length - 2] === number) (runs[runs.length - 1] as number)++;
    else runs.push(number, 1);
  }
  return runs;
}

const long: Limiter = { algorithm: 'token_bucket', limit: 100, capacity: 100, countsOver: false };
const day = 86_400;

for (const [algorithm, name, started] of limiterAlgorithms.flatMap((each) => [
  [each, 'Redis', redis] as const,
  [each, 'Valkey', valkey] as const,
])) {
  const check = started === undefined ? test.skip : test;
  check(`${algorithm}: two workers on one ${name} admit together what one would`, async (t) => {
    const server = (await started) as RedisServer;
    const stores = [await openRedisStore(t, server.url), await openRedisStore(t, server.url)];
    const window = toWindow({ ...long, algorithm }, day, Date.now());
    const hits = Array.from({ length: 400 }, () =>
      createHit({ key: `shared-${algorithm}`, limit: 100, limiter: window, windowSeconds: day }),
    );
    const outcomes = await Promise.all(
      hits.map((hit, index) => count(stores[index % 2] as CounterStore, hit)),
    );
    t.true(outcomes.every(({ error }) => error === undefined));
    t.is(hits.filter(({ after }) => after <= 100).length, 100);
    for (const store of stores) await store.close(0);
  });
}
