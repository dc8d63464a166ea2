// What every counter store must do, as one suite: each implementation runs it from its own test file. Behaviour of a
// single implementation (faults of a server, expiry commands) is tested there.
import type { ExecutionContext, TestFn } from 'ava';
import fc from 'fast-check';
import { systemClock } from '../../shared/clock.ts';
import type { AppError } from '../../shared/errors.ts';
import type { CounterStore } from '../../worker/counters/store.ts';
import { type CounterModel, createCounterModel } from '../support/counter-model.ts';
import {
  countOn,
  createHit,
  createRequest,
  type HitOptions,
  startCounting,
} from '../support/counting.ts';
import { pluck } from '../support/pluck.ts';

export interface StoreUnderTest {
  readonly store: CounterStore;
  /** The counter as text, or undefined when there is none. */
  readCounter(key: string): Promise<string | undefined>;
  close(): Promise<void>;
}

export interface CounterStoreSuite {
  /** The prefix of the titles. */
  readonly name: string;
  /** A connected store. It may contain counters of an earlier test: keys are never reused. */
  open(t: ExecutionContext): Promise<StoreUnderTest>;
  /** Whether it consists of two stores that are called one after the other: a request that fails in part is not counted
   * completely, and concurrent requests may overtake each other between the two. */
  readonly isComposite: boolean;
  /** Titles of tests that do not apply, each with the reason. */
  readonly skip?: Readonly<Record<string, string>>;
}

export const longKeys = 'keys of 60,000 characters count apart, and are stored as they are';

let keysUsed = 0;
const freshKey = () => `suite_${process.pid}_${keysUsed++}_`;

export function testCounterStore(test: TestFn, suite: CounterStoreSuite): void {
  const skipped = new Map(Object.entries(suite.skip ?? {}));
  const check = (
    title: string,
    run: (t: ExecutionContext, under: StoreUnderTest) => Promise<void>,
  ) => {
    if (skipped.delete(title)) return;
    test(`${suite.name}: ${title}`, async (t) => {
      const under = await suite.open(t);
      t.teardown(under.close);
      await run(t, under);
    });
  };

  check('hits add up, and each gets the counter after it in order', async (t, { store }) => {
    const key = freshKey();
    const results = await Promise.all([1, 2, 3].map((hits) => countAfter(store, [{ key, hits }])));
    t.deepEqual(results, [[1], [3], [6]]);
    t.deepEqual(await countAfter(store, [{ key, hits: 4 }]), [10]);
  });

  check('a key that occurs twice in a request counts in order', async (t, { store }) => {
    const key = freshKey();
    const after = await countAfter(store, [
      { key, hits: 5 },
      { key, hits: 2, refund: true },
      { key, hits: 1 },
    ]);
    t.deepEqual(after, [5, 3, 4]);
  });

  check(longKeys, async (t, { store, readCounter }) => {
    const long = `${freshKey()}${'x'.repeat(60_000)}`;
    const after = await Promise.all(
      ['a', 'b', 'a'].map((end) => countAfter(store, [{ key: `${long}${end}` }])),
    );
    t.deepEqual(after, [[1], [1], [2]]);
    t.deepEqual([await readCounter(`${long}a`), await readCounter(`${long}b`)], ['2', '1']);
    const request = startCounting(
      [`${long}a`, `${long}b`, `${long}c`].map((key) => createHit({ key, limit: 2 })),
      { mode: 'add-unless-over' },
    );
    store.count(request.request);
    t.deepEqual((await request.result).after, [3, 1, 0]);
  });

  check('a window of 100 years is counted', async (t, { store, readCounter }) => {
    const hit = { key: freshKey(), windowSeconds: 100 * 365 * 86_400 };
    t.deepEqual(await countAfter(store, [hit]), [1]);
    t.is(await readCounter(hit.key), '1');
    t.deepEqual(await countAfter(store, [hit]), [2]);
  });

  check('hits of 0 only read, and create the counter', async (t, { store, readCounter }) => {
    const key = freshKey();
    t.deepEqual(await countAfter(store, [{ key, hits: 0 }]), [0]);
    t.is(await readCounter(key), '0');
    await countAfter(store, [{ key, hits: 3 }]);
    t.deepEqual(await countAfter(store, [{ key, hits: 0 }]), [3]);
  });

  check('a refund stops at 0 and creates no counter', async (t, { store, readCounter }) => {
    const key = freshKey();
    t.deepEqual(await countAfter(store, [{ key, hits: 3, refund: true }]), [0]);
    t.is(await readCounter(key), undefined);
    await countAfter(store, [{ key, hits: 5 }]);
    t.deepEqual(await countAfter(store, [{ key, hits: 3, refund: true }]), [2]);
    t.deepEqual(await countAfter(store, [{ key, hits: 3, refund: true }]), [0]);
    t.is(await readCounter(key), '0');
  });

  check('a huge refund of a huge counter is exact', async (t, { store, readCounter }) => {
    const key = freshKey();
    await countAfter(store, [{ key, hits: 2n ** 62n + 3n }]);
    await countAfter(store, [{ key, hits: 2n ** 62n, refund: true }]);
    t.is(await readCounter(key), '3');
    await countAfter(store, [{ key, hits: 2n ** 63n - 1n, refund: true }]);
    t.is(await readCounter(key), '0');
  });

  check(
    'hits that do not fit into a counter are over their limit, and leave it unchanged',
    async (t, { store, readCounter }) => {
      const key = freshKey();
      await countAfter(store, [{ key, hits: 2n ** 63n - 4n }]);
      const [first, second, third, other] = await Promise.all([
        count(store, [{ key, hits: 2 }]),
        count(store, [{ key, hits: 2 }]),
        count(store, [{ key, hits: 0 }]),
        count(store, [{ key: `${key}other`, hits: 7 }]),
      ]);
      t.deepEqual(pluck([first, second, third], 'error'), [undefined, undefined, undefined]);
      t.true(Number(second.after) > 2 ** 32);
      t.deepEqual(other.after, [7]);
      t.is(await readCounter(key), String(2n ** 63n - 2n));
    },
  );

  check('a peek adds nothing but refunds', async (t, { store, readCounter }) => {
    const [a, b] = [freshKey(), freshKey()];
    await countAfter(store, [{ key: a, hits: 4 }]);
    const hits = [
      { key: a, hits: 2 },
      { key: b, hits: 3 },
      { key: a, hits: 1, refund: true },
    ];
    t.deepEqual(await countAfter(store, hits, 'peek'), [4, 0, 3]);
    t.is(await readCounter(b), '0');
  });

  check('with a limit passed, only the hits that pass it count', async (t, { store }) => {
    const [small, big] = [freshKey(), freshKey()];
    const hits = [
      { key: small, hits: 1, limit: 2 },
      { key: big, hits: 1, limit: 10 },
    ];
    const afters = [];
    for (let i = 0; i < 4; i++) afters.push(await countAfter(store, hits, 'add-unless-over'));
    t.deepEqual(afters, [
      [1, 1],
      [2, 2],
      [3, 2],
      [4, 2],
    ]);
  });

  check(
    'hits that refuse nothing stop no others, and quotas stop them together',
    async (t, { store }) => {
      const keys = [freshKey(), freshKey(), freshKey(), freshKey()];
      const hitsOf = (...roles: readonly HitOptions['stopsOthers'][]) =>
        roles.map((stopsOthers = 'alone', index) => ({
          key: keys[index] ?? '',
          limit: index,
          descriptorIndex: index,
          stopsOthers,
        }));
      const count = (...roles: readonly HitOptions['stopsOthers'][]) =>
        countAfter(store, hitsOf(...roles), 'add-unless-over');
      t.deepEqual(await count('never', 'alone', 'never', 'never'), [1, 1, 1, 1]);
      t.deepEqual(await count('together', 'never', 'together', 'never'), [2, 2, 2, 2]);
      t.deepEqual(await count('together', 'never', 'together', 'never'), [3, 3, 3, 2]);
      t.deepEqual(await count('never', 'alone', 'never', 'never'), [4, 4, 4, 2]);
    },
  );

  check('a refund is made although another limit is passed', async (t, { store }) => {
    const [a, b, c] = [freshKey(), freshKey(), freshKey()];
    await countAfter(store, [{ key: c, hits: 5 }]);
    const hits = [
      { key: a, hits: 1, limit: 0 },
      { key: b, hits: 1, limit: 9 },
      { key: c, hits: 2, refund: true, limit: 0 },
    ];
    t.deepEqual(await countAfter(store, hits, 'add-unless-over'), [1, 0, 3]);
  });

  for (const [title, kinds, hit] of [
    ['requests that come together are answered as if one by one', ['add', 'peek'], hugeHit],
    ['the same with limits that stop the others', ['add', 'peek', 'add-unless-over'], exactHit],
  ] as const) {
    check(title, async (t, under) => {
      const planned = requestArbitrary(kinds, hit, suite.isComposite);
      const requests = fc.array(planned, suite.isComposite ? oneByOne : batchSize);
      await fc.assert(
        fc.asyncProperty(fc.array(requests, { minLength: 1, maxLength: 4 }), (batches) =>
          compareWithModel(t, under, batches),
        ),
        { numRuns: 150 },
      );
      t.pass();
    });
  }

  check('settle is never called from inside count, and only once', async (t, { store }) => {
    let settled = 0;
    await new Promise<void>((resolve) => {
      const request = createRequest([createHit({ key: freshKey() })], {
        settle() {
          settled++;
          resolve();
        },
      });
      store.count(request);
      t.is(settled, 0);
    });
    await countAfter(store, [{ key: freshKey() }]);
    t.is(settled, 1);
  });

  check('a settle that throws does not affect the others', async (t, { store }) => {
    const key = freshKey();
    const broken = createRequest([createHit({ key })], {
      settle() {
        throw new Error('broken on purpose');
      },
    });
    store.count(broken);
    t.deepEqual(await countAfter(store, [{ key }]), [2]);
  });

  check('a cancelled request that was not sent is not counted', async (t, under) => {
    const key = freshKey();
    const { request, result } = startCounting([createHit({ key })]);
    under.store.count(request);
    request.cancelled = true;
    t.truthy((await result).error);
    t.is(await under.readCounter(key), undefined);
  });

  check('a request past its deadline is not counted', async (t, under) => {
    const key = freshKey();
    const deadlineMs = systemClock.monotonicMs() - 1;
    const { request, result } = startCounting([createHit({ key })], { deadlineMs });
    under.store.count(request);
    t.is((await result).error?.code, 'store');
    t.is(await under.readCounter(key), undefined);
  });

  check('hits counted before the close are answered, later ones are refused', async (t, under) => {
    const key = freshKey();
    const before = countAfter(under.store, [{ key, hits: 2 }]);
    const closing = under.store.close(5_000);
    const after = await count(under.store, [{ key }]);
    await closing;
    await under.store.close(0);
    t.deepEqual(await before, [2]);
    t.is(after.error?.code, 'store');
  });

  if (skipped.size > 0) throw new Error(`no such titles: ${[...skipped.keys()].join('; ')}`);
}

const batchSize = { minLength: 1, maxLength: 12 };
const oneByOne = { minLength: 1, maxLength: 1 };

/** Names in a property's requests; each run derives its own keys from them. The last one gets the largest number, and
 * no refunds. */
const names = ['a', 'b', 's', 'full'] as const;
type Name = (typeof names)[number];

interface PlannedHit {
  readonly name: Name;
  readonly hits: number | bigint;
  readonly refund: boolean;
  readonly limit: number;
}

const exactHit = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom(2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 40) },
);
/** The order of sums that fill a counter and are refunded at once is undefined, so whatever is refunded here must not
 * be filled up by summed numbers. */
const hugeHit = fc.oneof(
  { weight: 6, arbitrary: exactHit },
  { weight: 1, arbitrary: fc.constantFrom(2 ** 53 - 1, 2n ** 53n + 1n, 2n ** 59n + 1n) },
);

function requestArbitrary(
  modes: readonly ('add' | 'peek' | 'add-unless-over')[],
  hits: fc.Arbitrary<number | bigint>,
  isComposite: boolean,
) {
  const hit = fc.oneof(
    {
      weight: 9,
      arbitrary: fc.record({
        name: fc.constantFrom<Name>('a', 'b', 's'),
        hits,
        refund: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.boolean()),
        limit: fc.constantFrom(0, 1, 3, 10, 2 ** 32 - 1),
      }),
    },
    {
      weight: isComposite ? 0 : 1,
      arbitrary: fc.record({
        name: fc.constant<Name>('full'),
        hits: fc.constantFrom(0, 1, 2n ** 63n - 1n),
        refund: fc.constant(false),
        limit: fc.constant(10),
      }),
    },
  );
  return fc.record({
    mode: fc.constantFrom(...modes),
    hits: fc.array(hit, { minLength: 1, maxLength: 4 }),
  });
}

type PlannedRequest = {
  readonly mode: 'add' | 'peek' | 'add-unless-over';
  readonly hits: readonly PlannedHit[];
};

async function compareWithModel(
  t: ExecutionContext,
  { store, readCounter }: StoreUnderTest,
  batches: readonly (readonly PlannedRequest[])[],
): Promise<void> {
  const prefix = freshKey();
  const model = createCounterModel();
  for (const batch of batches) {
    const expected = batch.map((request) =>
      model.count(request.mode, withKeys(request.hits, prefix)),
    );
    const actual = await Promise.all(
      batch.map((request) => count(store, withKeys(request.hits, prefix), request.mode)),
    );
    for (const [index, { error, after }] of actual.entries()) {
      const wanted = expected[index];
      if (wanted === undefined) throw new Error('one result for each request');
      if (error !== undefined) throw new Error(`request ${index}: ${error.message}`);
      if (!isSame(after, wanted)) {
        throw new Error(`request ${index}: ${after} instead of ${wanted}`);
      }
    }
  }
  await compareCounters(t, readCounter, prefix, model);
}

async function compareCounters(
  t: ExecutionContext,
  readCounter: StoreUnderTest['readCounter'],
  prefix: string,
  model: CounterModel,
): Promise<void> {
  for (const name of names) {
    const key = prefix + name;
    const value = await readCounter(key);
    if (value !== model.read(key)?.toString()) {
      throw new Error(`counter ${name}: ${value} instead of ${model.read(key)} in ${t.title}`);
    }
  }
}

/** Exact while adding a few hits is exact; above that, both are rounded. */
function isSame(after: readonly number[], wanted: readonly bigint[]): boolean {
  return wanted.every((value, index) => {
    const got = after[index] ?? Number.NaN;
    if (value < 2n ** 52n) return BigInt(got) === value;
    return Math.abs(got / Number(value) - 1) < 1e-12;
  });
}

function withKeys(hits: readonly PlannedHit[], prefix: string): HitOptions[] {
  return hits.map(({ name, ...hit }) => ({
    ...hit,
    key: prefix + name,
    unit: name === 's' ? 'second' : 'hour',
  }));
}

/** Counts, and returns the resulting counters; throws when it fails. */
async function countAfter(
  store: CounterStore,
  hits: readonly HitOptions[],
  mode: PlannedRequest['mode'] = 'add',
): Promise<number[]> {
  const { error, after } = await count(store, hits, mode);
  if (error !== undefined) throw error;
  return after;
}

function count(
  store: CounterStore,
  hits: readonly HitOptions[],
  mode: PlannedRequest['mode'] = 'add',
): Promise<{ error: AppError | undefined; after: number[] }> {
  return countOn(store, hits.map(createHit), { mode });
}
