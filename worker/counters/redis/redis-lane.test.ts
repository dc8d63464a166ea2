// Tests how a lane replaces connections that lead to a read-only replica, and whose answers it reports, on a clock that
// is advanced by hand.
import test from 'ava';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { type Connection, ReplyError, toCommandText } from './connection.ts';
import { type Redirect, RedisLane } from './redis-lane.ts';

const command = toCommandText('INCRBY', 'a', 1);
const tick = () => new Promise((resolve) => setImmediate(resolve));

interface Given {
  readonly redirect?: Redirect;
  readonly maxAgeMs?: number;
  /** The attempt to connect waits for this. */
  readonly opening?: Promise<void>;
}

function setUp({ redirect, maxAgeMs, opening }: Given = {}) {
  const clock = createManualClock();
  let attempts = 0;
  let destroyed = 0;
  let isReadonly = true;
  let isBroken = false;
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
    redirect,
    onFailure: () => {},
  });

  function createConnection(): Connection {
    const reply = () => {
      if (isBroken) return new Error('the connection was closed');
      return isReadonly ? new ReplyError('READONLY a replica') : 1;
    };
    return {
      send: (commands, done) => setImmediate(() => done(commands.map(reply))),
      ask: async () => 1,
      destroy: () => destroyed++,
      ended: new Promise(() => {}),
    };
  }

  return {
    lane,
    clock,
    attempts: () => attempts,
    destroyed: () => destroyed,
    promote: () => {
      isReadonly = false;
    },
    breakConnection: () => {
      isBroken = true;
    },
    /** True when the hit was counted; waits for the consequences for the connection. */
    async count() {
      const replies = await new Promise<unknown[]>((resolve) =>
        lane.send([command], resolve, () => {}),
      );
      await tick();
      return replies[0] === 1;
    },
  };
}

test('a connection is replaced at once when a replica refuses it after a while', async (t) => {
  const { lane, clock, count, attempts } = setUp();
  lane.keepOpen();
  await tick();
  clock.advance(5_000);
  t.false(await count());
  t.is(attempts(), 2);
  t.true(lane.ready);
});

test('connections that repeatedly lead to a replica are opened with pauses', async (t) => {
  const { lane, clock, count, attempts, promote } = setUp();
  lane.keepOpen();
  await tick();
  for (let round = 1; round <= 10; round++) {
    t.false(await count());
    t.is(attempts(), round, 'nothing is opened at once');
    t.false(lane.ready);
    clock.advance(500);
    await tick();
    t.is(attempts(), round + 1);
  }
  t.false(await count());
  clock.advance(200);
  await tick();
  t.false(lane.ready, 'the pauses have grown');
  promote();
  clock.advance(300);
  await tick();
  t.true(await count());
  t.true(lane.ready);
});

test('a lane that is closed in such a pause opens nothing more', async (t) => {
  const { lane, clock, count, attempts } = setUp();
  lane.keepOpen();
  await tick();
  await count();
  lane.close();
  lane.keepOpen();
  clock.advance(10_000);
  t.is(attempts(), 1);
  t.is(clock.pending, 0);
});

test('the answer of the server is reported before those of the nodes that it names', async (t) => {
  const { lane, promote } = setUp({ redirect: () => {} });
  promote();
  lane.keepOpen();
  await tick();
  await new Promise<void>((onAnswer) =>
    lane.send([command], () => t.fail('nobody else has answered'), onAnswer),
  );
  t.pass();
});

test('a lost connection does not count as an answer', async (t) => {
  const { lane, breakConnection } = setUp();
  breakConnection();
  lane.keepOpen();
  await tick();
  await new Promise((resolve) =>
    lane.send([command], resolve, () => t.fail('the server has not answered')),
  );
  t.pass();
});

test('a connection that opens after its attempt was abandoned is ended', async (t) => {
  const opening = Promise.withResolvers<void>();
  const { lane, destroyed } = setUp({ opening: opening.promise });
  lane.keepOpen();
  lane.halt('the server is away');
  opening.resolve();
  await tick();
  t.is(destroyed(), 1);
  t.false(lane.ready);
});

test('a connection is only replaced after its pending commands are answered', async (t) => {
  const { lane, clock, count, attempts, destroyed, promote } = setUp({ maxAgeMs: 60_000 });
  promote();
  lane.keepOpen();
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
