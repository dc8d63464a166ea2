// What leases guarantee on every counter store that supports them, as one suite: each store runs it from its own test
// file. Tests that need a manual clock are next to the leases (worker/counters).
import type { ExecutionContext, TestFn } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import { type LimiterAlgorithm, limiterAlgorithms } from '../../shared/rules/limit-shape.ts';
import { Leases } from '../../worker/counters/leases.ts';
import type { Hit } from '../../worker/counters/store.ts';
import { createRegistry } from '../../worker/metrics/registry.ts';
import { createHit, startCounting } from '../support/counting.ts';
import { eventually } from '../support/eventually.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import type { StoreUnderTest } from './counter-store.ts';

export interface LeasesSuite {
  /** The prefix of the titles. */
  readonly name: string;
  /** A connected store. Keys are never used twice. */
  open(t: ExecutionContext): Promise<StoreUnderTest>;
}

type Algorithm = LimiterAlgorithm | 'fixed_window';

const day = 86_400;
/** Above every counter. */
const allHits = 2 ** 52;
/** Longer than the tests, so that only their actions end a lease. */
const lease = { share: 0.05, forMs: 600_000 };
let keysUsed = 0;

export function testLeases(test: TestFn, suite: LeasesSuite): void {
  for (const algorithm of ['fixed_window', ...limiterAlgorithms] as const) {
    const check = (
      title: string,
      run: (t: ExecutionContext, given: Awaited<ReturnType<typeof setUp>>) => Promise<void>,
    ) =>
      test(`${suite.name}, ${algorithm}: ${title}`, async (t) => {
        await run(t, await setUp(t, suite, algorithm));
      });

    check('two workers admit all of the limit, and no hit more', async (t, given) => {
      const workers = [given.createWorker(), given.createWorker()];
      let admitted = 0;
      for (let index = 0; index < 1_300; index++)
        if (await ask(workers[index % 2] as Leases, given.hit(1_000))) admitted++;
      t.is(admitted, 1_000);
    });

    check('simultaneous requests do not exceed the limit either', async (t, given) => {
      const workers = [given.createWorker(), given.createWorker()];
      const hits = (index: number) => 1 + (index % 7);
      const answers = await Promise.all(
        Array.from({ length: 600 }, (_, index) =>
          ask(workers[index % 2] as Leases, given.hit(1_000, hits(index))),
        ),
      );
      const admitted = answers.reduce((sum, isIn, index) => sum + (isIn ? hits(index) : 0), 0);
      t.true(admitted <= 1_000, `${admitted}`);
      t.true(admitted >= 1_000 - 2 * 0.05 * 1_000 - 7, `${admitted}`);
    });

    check('hits that a worker has not used are returned when it has stopped', async (t, given) => {
      const worker = given.createWorker();
      for (let index = 0; index < 2; index++) await ask(worker, given.hit(1_000));
      t.is(await given.used(1_000), 1 + 49);
      worker.close();
      await eventually('it is given back', async () => (await given.used(1_000)) !== 1 + 49);
      t.is(await given.used(1_000), 2);
    });

    check('a refund reaches the store at once', async (t, given) => {
      const worker = given.createWorker();
      for (let index = 0; index < 2; index++) await ask(worker, given.hit(1_000));
      await ask(worker, given.hit(1_000, 10, true));
      t.is(await given.used(1_000), 1 + 49 - 10);
    });

    check(
      'more hits than a limit has are refused; those of a lease stay usable',
      async (t, given) => {
        const worker = given.createWorker();
        for (let index = 0; index < 2; index++) await ask(worker, given.hit(1_000));
        t.false(await ask(worker, given.hit(1_000, 4_294_967_295)));
        let admitted = 0;
        for (let index = 0; index < 48; index++)
          if (await ask(worker, given.hit(1_000))) admitted++;
        t.is(admitted, 48);
      },
    );

    check(
      'after a reset all of the limit is available again, and no hit more',
      async (t, given) => {
        const [first, second] = [given.createWorker(), given.createWorker()];
        for (let index = 0; index < 400; index++)
          await ask(index % 2 === 0 ? first : second, given.hit(1_000));
        await ask(given.store, given.hit(1_000, allHits, true));
        for (const worker of [first, second]) worker.forget(given.hit(1_000).mapKey);
        let admitted = 0;
        for (let index = 0; index < 1_300; index++)
          if (await ask(index % 2 === 0 ? first : second, given.hit(1_000))) admitted++;
        t.is(admitted, 1_000);
      },
    );
  }
}

async function setUp(t: ExecutionContext, suite: LeasesSuite, algorithm: Algorithm) {
  const under = await suite.open(t);
  t.teardown(under.close);
  const key = `leases_${process.pid}_${keysUsed++}_`;
  const windowStart = Math.floor(Date.now() / 1_000 / day) * day;
  const hit = (limit: number, hits = 1, refund = false): Hit => {
    const limiter = algorithm !== 'fixed_window' && {
      algorithm,
      limit,
      capacity: limit,
      countsOver: false,
      windowStart,
      windowSeconds: day,
      isEven: true,
    };
    return createHit({
      key,
      hits,
      refund,
      limit,
      windowSeconds: day,
      lease,
      ...(limiter && { limiter }),
    });
  };
  return {
    store: under.store,
    hit,
    /** Includes leased hits. */
    async used(limit: number): Promise<number> {
      const peek = hit(limit, 0);
      await ask(under.store, peek);
      return peek.after;
    },
    createWorker(): Leases {
      const metrics = createRegistry({ runtimeNamesMax: 1, log: createRecordedLog() });
      const worker = new Leases({ store: under.store, clock: systemClock, metrics });
      t.teardown(() => worker.close());
      return worker;
    },
  };
}

/** Whether the hit was admitted. */
async function ask(counting: Pick<Leases, 'count'>, hit: Hit): Promise<boolean> {
  const { request, result } = startCounting([hit]);
  counting.count(request);
  const { error } = await result;
  if (error !== undefined) throw error;
  return hit.after <= hit.limit;
}
