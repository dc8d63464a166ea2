// Tests how a lane replaces its connection, on a clock that is advanced by hand; how it carries batches is in
// batching.txt.
import test from 'ava';
import { createHit, startCounting } from '../../../test/support/counting.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createOperationDeps } from '../../../test/support/operation-deps.ts';
import { Batch } from './batch.ts';
import { type Connection, ReplyError } from './connection.ts';
import { RedisLane } from './redis-lane.ts';

const tick = () => new Promise((resolve) => setImmediate(resolve));

interface Given {
  readonly maxAgeMs?: number;
  /** The attempt to connect waits for this. */
  readonly opening?: Promise<void>;
  /** How many connections have ended already when they open. */
  readonly endedAtOnce?: number;
}

function setUp({ maxAgeMs, opening, endedAtOnce = 0 }: Given = {}) {
  const clock = createManualClock();
  let attempts = 0;
  let destroyed = 0;
  let isReadonly = true;
  const lane = new RedisLane({
    clock,
    open: async () => {
      attempts++;
      await opening;
      return createConnection();
    },
    timeoutMs: 1_000,
    maxAgeMs,
    reconnects: true,
    closeOnReadonlyError: true,
    onOpen: () => {},
    onEnd: () => {},
    redirect: undefined,
    onFailure: () => {},
  });

  function createConnection(): Connection {
    const reply = () => (isReadonly ? new ReplyError('READONLY a replica') : 1);
    return {
      send: (commands, done) => setImmediate(() => done(commands.map(reply))),
      ask: async () => 1,
      destroy: () => destroyed++,
      ended: attempts <= endedAtOnce ? Promise.resolve('closed') : new Promise(() => {}),
    };
  }

  const createBatch = () => {
    const batch = new Batch(createOperationDeps(clock), {
      settleIfLate: () => false,
      fail: () => {},
    });
    const { request } = startCounting([createHit({ key: 'a' })]);
    batch.add({ request, arrivedMs: 0, failure: undefined, isSettled: false });
    return batch;
  };

  return {
    lane,
    clock,
    attempts: () => attempts,
    destroyed: () => destroyed,
    promote: () => {
      isReadonly = false;
    },
    /** True when the hit was counted; waits for the consequences for the connection. */
    async count() {
      const { requests } = await new Promise<Batch>((finished) =>
        lane.carry(createBatch(), { answered: () => {}, finished }),
      );
      await tick();
      return requests[0]?.failure === undefined;
    },
  };
}

test('a connection is replaced at once when a replica refuses it after a while', async (t) => {
  const { lane, clock, count, attempts } = setUp();
  lane.stayOpen();
  await tick();
  clock.advance(5_000);
  t.false(await count());
  t.is(attempts(), 2);
  t.true(lane.isOpen);
});

test('connections that repeatedly lead to a replica are opened with pauses', async (t) => {
  const { lane, clock, count, attempts, promote } = setUp();
  lane.stayOpen();
  await tick();
  for (let round = 1; round <= 10; round++) {
    t.false(await count());
    t.is(attempts(), round, 'nothing is opened at once');
    t.false(lane.isOpen);
    clock.advance(500);
    await tick();
    t.is(attempts(), round + 1);
  }
  t.false(await count());
  clock.advance(200);
  await tick();
  t.false(lane.isOpen, 'the pauses have grown');
  promote();
  clock.advance(300);
  await tick();
  t.true(await count());
  t.true(lane.isOpen);
});

test('a lane that is closed in such a pause opens nothing more', async (t) => {
  const { lane, clock, count, attempts } = setUp();
  lane.stayOpen();
  await tick();
  await count();
  lane.close();
  lane.stayOpen();
  clock.advance(10_000);
  t.is(attempts(), 1);
  t.is(clock.pending, 0);
});

test('a connection that opens after its attempt was abandoned is ended', async (t) => {
  const opening = Promise.withResolvers<void>();
  const { lane, destroyed } = setUp({ opening: opening.promise });
  lane.stayOpen();
  lane.halt('the server is away');
  opening.resolve();
  await tick();
  t.is(destroyed(), 1);
  t.false(lane.isOpen);
});

test('a connection that has ended when it opens is followed by the next attempt', async (t) => {
  const { lane, attempts } = setUp({ endedAtOnce: 1 });
  lane.stayOpen();
  await tick();
  t.deepEqual([attempts(), lane.isOpen], [2, true]);
});

test('a connection is only replaced after its pending commands are answered', async (t) => {
  const { lane, clock, count, attempts, destroyed, promote } = setUp({ maxAgeMs: 60_000 });
  promote();
  lane.stayOpen();
  await tick();
  t.true(await count());
  clock.advance(53_000);
  const counted = count();
  clock.advance(7_000);
  t.is(destroyed(), 0);
  t.true(await counted);
  t.deepEqual([destroyed(), attempts()], [1, 2]);
  clock.advance(60_000);
  t.is(destroyed(), 2, 'one that carries nothing is replaced at once');
});
