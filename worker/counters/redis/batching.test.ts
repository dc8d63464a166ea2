// How requests become batches and when they are given up, with lanes and time in the test's hands.
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createBreaker } from '../failure/breaker.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import type { CountMode, CountRequest, Hit } from '../store.ts';
import {
  type Batching,
  createBatching,
  createPipelineWindow,
  type EmptyPoolRule,
  type Lane,
} from './batching.ts';
import { isLost, type RawReply, ReplyError } from './connection.ts';
import { createScriptSupport } from './script-support.ts';

/** A command, without the EXPIRE that may follow it. */
interface Operation {
  readonly command: string;
  readonly key: string;
  readonly amount: number;
}

interface FakeLane extends Lane {
  ready: boolean;
  readonly sent: {
    operations: readonly Operation[];
    onAnswer: () => void;
    /** Calls `onAnswer` too, unless the connection was lost. */
    done: (replies: RawReply[]) => void;
  }[];
  readonly resets: string[];
}

function createFakeLane(): FakeLane {
  const sent: FakeLane['sent'] = [];
  const resets: string[] = [];
  return {
    ready: true,
    sent,
    resets,
    send(commands, done, onAnswer = () => {}) {
      const parsed = commands.map(parseCommand);
      const isExpiry = parsed.map(({ command }) => command === 'EXPIRE');
      sent.push({
        operations: parsed.filter((_, index) => !isExpiry[index]),
        onAnswer,
        done(replies) {
          const [first] = replies;
          if (!isLost(first)) onAnswer();
          const rest = [...replies];
          // An EXPIRE that is not confirmed is sent with each increment.
          done(isExpiry.map((is) => (is ? null : (rest.shift() ?? null))));
        },
      });
    },
    reset: (reason) => resets.push(reason),
  };
}

/** Of an array of texts: its length, and the length of each text before it. */
function parseCommand(text: string): Operation {
  const [, , command = '', , key = '', , amount] = text.split('\r\n');
  return { command, key, amount: Number(amount) };
}

interface SetUpOptions {
  readonly lanes?: number;
  readonly pipelineWindowMs?: number;
  readonly onEmptyPool?: EmptyPoolRule;
}

function setUp(options: SetUpOptions = {}) {
  const lanes = Array.from({ length: options.lanes ?? 1 }, createFakeLane);
  const clock = createManualClock();
  const failures: string[] = [];
  const log = createRecordedLog();
  const deps = {
    name: 'store',
    batches: {
      name: 'store',
      knownExpiries: createKnownExpiries(),
      scripts: createScriptSupport('store', 'REDIS_URL', log),
      clock,
      jitterMaxSeconds: 0,
      readonlyRemedy: 'set NAME=true',
      loginRemedy: 'write it in NAME_AUTH',
    },
    lanes,
    overflow: { ...createFakeLane(), ready: false },
    openOverflow: () => {
      deps.overflow.ready = true;
    },
    closeOverflow: () => {
      deps.overflow.ready = false;
    },
    breaker: createBreaker({ name: 'store', clock, onChange: () => {} }),
    clock,
    log,
    onRequestFailure: ({ message }: Error) => failures.push(message),
    timeoutMs: 1_000,
    patienceMs: 1_000,
    onEmptyPool: options.onEmptyPool ?? { behavior: 'wait', waitMs: 0 },
    pipelineWindowMs: options.pipelineWindowMs ?? 0,
  };
  const store = createBatching(deps);
  const [lane] = lanes as [FakeLane, ...FakeLane[]];
  return { store, lanes, lane, deps, clock, failures, log };
}

interface Counted {
  readonly request: CountRequest;
  /** The error texts, or 'ok', of all calls of `settle`. */
  readonly outcomes: string[];
}

function count(
  store: Batching,
  hits: readonly Hit[],
  deadlineMs = 10_000,
  mode: CountMode = 'add',
): Counted {
  const outcomes: string[] = [];
  const request: CountRequest = {
    hits,
    mode,
    deadlineMs,
    cancelled: false,
    settle: (error) => outcomes.push(error?.message ?? 'ok'),
  };
  store.count(request);
  return { request, outcomes };
}

function hit(key: string, hits = 1, limit = 10): Hit {
  const fixed = {
    refund: false,
    windowSeconds: 60,
    descriptorIndex: 0,
    stopsOthers: 'alone',
    unit: 'minute',
    after: Number.NaN,
    limiter: undefined,
    lease: undefined,
  } as const;
  return { ...fixed, key, mapKey: key, hits, limit, exactHits: undefined };
}

const tick = () => new Promise((resolve) => setImmediate(resolve));

function answer(
  t: ExecutionContext,
  lane: FakeLane,
  reply: (operation: Operation) => RawReply,
): void {
  const batch = lane.sent.shift();
  t.truthy(batch);
  batch?.done(batch.operations.map(reply));
}

test('requests that arrive while a batch is in flight become the next one', async (t) => {
  const { store, lane } = setUp();
  const first = hit('a');
  count(store, [first]);
  await tick();
  const [second, third] = [hit('a', 2), hit('a', 3)];
  count(store, [second]);
  count(store, [third]);
  await tick();
  t.is(lane.sent.length, 1);
  answer(t, lane, () => 11);
  await tick();
  t.is(first.after, 11);
  t.deepEqual(
    lane.sent[0]?.operations.map(({ key, amount }) => [key, amount]),
    [['a', 5]],
  );
  answer(t, lane, () => 16);
  t.deepEqual([second.after, third.after], [13, 16]);
});

test('batches alternate between the lanes, and skip one that is not ready', async (t) => {
  const { store, lanes } = setUp({ lanes: 3 });
  const [, unready] = lanes;
  if (unready) unready.ready = false;
  for (const key of ['a', 'b', 'c']) {
    count(store, [hit(key)]);
    await tick();
  }
  t.deepEqual(
    lanes.map(({ sent }) => sent.map(({ operations }) => operations[0]?.key)),
    [['a'], [], ['b']],
  );
});

test('a batch is bounded in operations, not in hits', async (t) => {
  const { store, lane } = setUp();
  for (let i = 0; i < 600; i++) count(store, [hit(`key${i}`)]);
  await tick();
  t.is(lane.sent[0]?.operations.length, 512);
  answer(t, lane, () => 1);
  await tick();
  t.is(lane.sent[0]?.operations.length, 88);
  for (let i = 0; i < 5000; i++) count(store, [hit('hot')]);
  answer(t, lane, () => 1);
  await tick();
  t.deepEqual(
    lane.sent[0]?.operations.map(({ amount }) => amount),
    [5000],
  );
});

test('an idle store has no timer', async (t) => {
  const { store, lane, clock } = setUp();
  t.is(clock.pending, 0);
  count(store, [hit('a')]);
  await tick();
  t.is(clock.pending, 1);
  answer(t, lane, () => 1);
  clock.advance(100);
  t.is(clock.pending, 0);
});

test('a deadline ends the wait for a lane and the wait for an answer, once', async (t) => {
  const { store, lane, clock, failures } = setUp();
  const written = count(store, [hit('a')], 300);
  await tick();
  const queued = count(store, [hit('a')], 200);
  clock.advance(225);
  t.deepEqual(queued.outcomes, ['store: the deadline passed before the hits were sent']);
  t.deepEqual(written.outcomes, []);
  clock.advance(100);
  t.deepEqual(written.outcomes, ['store: no answer before the deadline']);
  answer(t, lane, () => 1);
  await tick();
  t.is(written.outcomes.length, 1);
  t.is(queued.outcomes.length, 1);
  t.is(lane.sent.length, 0);
  t.is(failures.length, 2);
});

test('a lane that does not answer within the timeout is reset, whatever the callers waited', async (t) => {
  const { store, lane, clock } = setUp();
  count(store, [hit('a')], 20);
  await tick();
  clock.advance(900);
  t.deepEqual(lane.resets, []);
  clock.advance(200);
  t.is(lane.resets[0], 'no answer in 1000 ms');
});

test('a cancelled request leaves the queue and the second round of its batch', async (t) => {
  const { store, lane } = setUp();
  count(store, [hit('busy')]);
  await tick();
  const queued = count(store, [hit('a')]);
  const read = count(store, [hit('b'), hit('c')], 10_000, 'add-unless-over');
  queued.request.cancelled = true;
  answer(t, lane, () => 1);
  await tick();
  t.deepEqual(
    lane.sent[0]?.operations.map(({ command, key }) => [command, key]),
    [
      ['GET', 'b'],
      ['GET', 'c'],
    ],
  );
  read.request.cancelled = true;
  answer(t, lane, () => 0);
  await tick();
  t.is(lane.sent.length, 0);
  const left = 'store: the caller left before its hits were sent';
  t.deepEqual([...queued.outcomes, ...read.outcomes], [left, left]);
});

test('a counter that cannot be read fails the requests that need it, which then add nothing', async (t) => {
  const { store, lane } = setUp();
  const bad = count(store, [hit('bad'), hit('x')], 10_000, 'add-unless-over');
  const good = count(store, [hit('x'), hit('y')], 10_000, 'add-unless-over');
  await tick();
  answer(t, lane, ({ key }) => (key === 'bad' ? new ReplyError('broken') : 0));
  t.deepEqual(bad.outcomes, ['store: broken']);
  t.deepEqual(
    lane.sent[0]?.operations.map(({ key, amount }) => [key, amount]),
    [
      ['x', 1],
      ['y', 1],
    ],
  );
  answer(t, lane, () => 1);
  t.deepEqual(good.outcomes, ['ok']);
});

test('a failed operation fails the requests that have a hit in it, and no other', async (t) => {
  const { store, lane } = setUp();
  const outcomes = [['a'], ['a', 'b'], ['b']].map(
    (keys) =>
      count(
        store,
        keys.map((key) => hit(key)),
      ).outcomes,
  );
  await tick();
  answer(t, lane, ({ key }) => (key === 'a' ? new ReplyError('broken') : 5));
  t.deepEqual(outcomes, [['store: broken'], ['store: broken'], ['ok']]);
});

test('while the breaker is open, requests fail at once with the reason', async (t) => {
  const { store, lane, deps } = setUp();
  lane.ready = false;
  const early = count(store, [hit('a')]);
  await tick();
  t.deepEqual(early.outcomes, []);
  deps.breaker.open('refused');
  store.lanesChanged();
  await tick();
  const late = count(store, [hit('a')]);
  t.deepEqual(late.outcomes, []);
  await tick();
  t.deepEqual([...early.outcomes, ...late.outcomes], ['store: refused', 'store: refused']);
});

test('on trial one batch is sent, and its answer closes the breaker for the requests that wait', async (t) => {
  const { store, lane, deps } = setUp({ lanes: 3 });
  deps.breaker.openOnTimeout('silent');
  deps.breaker.halfOpen();
  const first = count(store, [hit('a')]);
  await tick();
  const second = count(store, [hit('b')]);
  await tick();
  t.is(lane.sent.length, 1);
  lane.sent[0]?.done([1]);
  t.deepEqual([first.outcomes, second.outcomes], [['ok'], []]);
  t.is(deps.breaker.state, 'closed');
  await tick();
  t.is(lane.sent.length, 2);
});

test('on trial no request waits long for the answer', async (t) => {
  const { store, lane, deps, clock } = setUp({ lanes: 3 });
  deps.breaker.openOnTimeout('silent');
  deps.breaker.halfOpen();
  const first = count(store, [hit('a')]);
  await tick();
  const second = count(store, [hit('b')]);
  await tick();
  clock.advance(150);
  t.deepEqual([first.outcomes, second.outcomes], [[], ['store: silent']]);
  const third = count(store, [hit('c')]);
  await tick();
  t.deepEqual(third.outcomes, ['store: silent']);
  t.is(lane.sent.length, 1);
});

test('a trial whose connection is lost leaves the breaker as it is', async (t) => {
  const { store, lane, deps } = setUp();
  deps.breaker.openOnTimeout('silent');
  deps.breaker.halfOpen();
  const { outcomes } = count(store, [hit('a')]);
  await tick();
  lane.sent[0]?.done([new Error('the connection was closed')]);
  t.deepEqual(outcomes, ['store: the connection was lost before the answer came']);
  t.is(deps.breaker.state, 'half-open');
});

test('a refusal is an answer, and closes the breaker too', async (t) => {
  const { store, lane, deps } = setUp();
  deps.breaker.openOnTimeout('silent');
  deps.breaker.halfOpen();
  count(store, [hit('a')]);
  await tick();
  lane.sent[0]?.done([new ReplyError('WRONGTYPE')]);
  t.is(deps.breaker.state, 'closed');
});

test('silence of all lanes opens the breaker, and fails what was sent and what waits', async (t) => {
  const { store, deps, clock } = setUp({ lanes: 1 });
  const sent = count(store, [hit('a')]);
  await tick();
  const waiting = count(store, [hit('b')]);
  await tick();
  clock.advance(900);
  t.is(deps.breaker.state, 'closed');
  clock.advance(200);
  await tick();
  t.is(deps.breaker.state, 'open');
  t.deepEqual(sent.outcomes, ['store: no answer in 1000 ms']);
  t.deepEqual(waiting.outcomes, ['store: no answer in 1000 ms']);
});

test('an answer to anything ends the silence', async (t) => {
  const { store, lanes, deps, clock } = setUp({ lanes: 2 });
  count(store, [hit('a')]);
  await tick();
  clock.advance(600);
  count(store, [hit('b')]);
  await tick();
  lanes[1]?.sent[0]?.done([1]);
  clock.advance(600);
  t.is(deps.breaker.state, 'closed');
});

test('while nothing is sent because the breaker is open, nobody is silent', async (t) => {
  const { store, lane, deps, clock } = setUp();
  lane.ready = false;
  deps.breaker.open('refused');
  for (let round = 0; round < 50; round++) {
    count(store, [hit('a')]);
    clock.advance(25);
    await tick();
  }
  t.is(deps.breaker.reason, 'refused');
  lane.ready = true;
  deps.breaker.halfOpen();
  t.is(deps.breaker.state, 'closed', 'it needs no trial');
  count(store, [hit('b')]);
  await tick();
  clock.advance(900);
  t.is(deps.breaker.state, 'closed', 'and has all the time that it had before');
});

test('silence is counted anew when nothing was open in between', async (t) => {
  const { store, lane, deps, clock } = setUp();
  lane.ready = false;
  count(store, [hit('a')], 900);
  await tick();
  clock.advance(60_000);
  lane.ready = true;
  count(store, [hit('b')], 100_000);
  await tick();
  clock.advance(900);
  t.is(deps.breaker.state, 'closed');
  clock.advance(200);
  t.is(deps.breaker.state, 'open');
});

test('a server that has named another one is not silent while that is', async (t) => {
  const { store, lane, deps, clock } = setUp();
  const { outcomes } = count(store, [hit('a')], 5_000);
  await tick();
  lane.sent[0]?.onAnswer();
  clock.advance(4_000);
  t.is(deps.breaker.state, 'closed');
  t.deepEqual(lane.resets, []);
  clock.advance(1_000);
  t.deepEqual(outcomes, ['store: no answer before the deadline']);
  answer(t, lane, () => 1);
  count(store, [hit('b')], 50_000);
  await tick();
  clock.advance(1_100);
  t.is(deps.breaker.state, 'open', 'what it is sent next it has to answer as well');
});

test('a pause of this process is no silence', async (t) => {
  const { store, deps, clock } = setUp();
  count(store, [hit('a')]);
  await tick();
  // All that was due meanwhile comes late, once.
  clock.stall(5_000);
  t.is(deps.breaker.state, 'closed');
});

test('waiting requests are bounded in number; one more fails at once', async (t) => {
  const { store, lane } = setUp();
  lane.ready = false;
  const shared = [hit('a')];
  for (let i = 0; i < 65_536; i++) count(store, shared);
  const refused = count(store, shared);
  t.deepEqual(refused.outcomes, []);
  await tick();
  t.deepEqual(refused.outcomes, ['store: 65536 requests are waiting already']);
});

test('a settle that counts again does not lose the new request', async (t) => {
  const { store, lane, clock } = setUp();
  lane.ready = false;
  const again = hit('again');
  const kept = hit('kept');
  store.count({
    hits: [hit('a')],
    mode: 'add',
    deadlineMs: 50,
    cancelled: false,
    settle: () => count(store, [again]),
  });
  count(store, [kept]);
  await tick();
  clock.advance(100);
  lane.ready = true;
  store.lanesChanged();
  await tick();
  t.deepEqual(
    lane.sent[0]?.operations.map(({ key }) => key),
    ['kept', 'again'],
  );
});

test('a pipeline window holds a batch back for whole milliseconds', async (t) => {
  const { store, lane, clock } = setUp({ pipelineWindowMs: 2.5 });
  count(store, [hit('a')]);
  await tick();
  await tick();
  count(store, [hit('b')]);
  t.is(lane.sent.length, 0);
  clock.advance(2);
  t.is(lane.sent[0]?.operations.length, 2);
});

test('a pipeline window below a millisecond lets in what arrives while the worker sleeps', async (t) => {
  const { store, lane } = setUp({ pipelineWindowMs: 0.15 });
  count(store, [hit('a')]);
  await tick();
  t.is(lane.sent.length, 0);
  count(store, [hit('b')]);
  await tick();
  t.is(lane.sent[0]?.operations.length, 2);
});

test('a pipeline window holds nothing back while a batch is under way', async (t) => {
  const { store, lanes, clock } = setUp({ pipelineWindowMs: 5, lanes: 2 });
  count(store, [hit('a')]);
  await tick();
  clock.advance(5);
  count(store, [hit('b')]);
  await tick();
  t.deepEqual(
    lanes.map((lane) => lane.sent.length),
    [1, 1],
  );
});

test('a pipeline window holds no batch back that is large already', async (t) => {
  const { store, lane } = setUp({ pipelineWindowMs: 5 });
  for (let index = 0; index < 16; index++) count(store, [hit(`key${index}`)]);
  await tick();
  t.is(lane.sent[0]?.operations.length, 16);
});

test('a pipeline window holds nothing back that cannot be sent', async (t) => {
  const { store, lane, deps } = setUp({ pipelineWindowMs: 5 });
  deps.breaker.open('refused');
  const refused = count(store, [hit('a')]);
  await tick();
  t.is(refused.outcomes.length, 1);
  t.is(lane.sent.length, 0);
});

test('waiting for the pipeline window is not taken for silence of the store', async (t) => {
  const { store, lane, deps, clock } = setUp({ pipelineWindowMs: 3_000 });
  const { outcomes } = count(store, [hit('a')]);
  await tick();
  clock.advance(3_000);
  t.is(deps.breaker.state, 'closed');
  answer(t, lane, () => 1);
  t.deepEqual(outcomes, ['ok']);
});

test('draining waits for what is open, and at the end of its grace fails it', async (t) => {
  const waits = setUp();
  const answered = count(waits.store, [hit('a')]);
  const draining = waits.store.drain(500);
  await tick();
  answer(t, waits.lane, () => 1);
  await draining;
  t.deepEqual(answered.outcomes, ['ok']);
  t.is(waits.clock.pending, 0);
  const gives = setUp();
  const silent = count(gives.store, [hit('a')]);
  await tick();
  const queued = count(gives.store, [hit('b')]);
  const ending = gives.store.drain(500);
  gives.clock.advance(500);
  await ending;
  const stopped = 'store: the worker stopped before an answer came';
  t.deepEqual([...silent.outcomes, ...queued.outcomes], [stopped, stopped]);
  const late = count(gives.store, [hit('c')]);
  await tick();
  t.deepEqual(late.outcomes, ['store: the worker is stopping']);
  answer(t, gives.lane, () => 1);
  t.is(silent.outcomes.length, 1);
});

test('a settle that throws is logged and the others are told', async (t) => {
  const { store, lane, log } = setUp();
  store.count({
    hits: [hit('a')],
    mode: 'add',
    deadlineMs: 10_000,
    cancelled: false,
    settle() {
      throw new Error('broken on purpose');
    },
  });
  const other = count(store, [hit('a')]);
  await tick();
  answer(t, lane, () => 2);
  t.deepEqual(other.outcomes, ['ok']);
  t.deepEqual(log.lines, ['error a decision failed when its hits were counted: broken on purpose']);
});

test('an increment that does not fit as a sum is made again hit by hit', async (t) => {
  const { store, lane } = setUp();
  const [first, second] = [count(store, [hit('a', 3), hit('b')]), count(store, [hit('a', 2)])];
  await tick();
  const failure = new ReplyError('would overflow');
  answer(t, lane, ({ key }) => (key === 'a' ? failure : 1));
  t.deepEqual(
    lane.sent[0]?.operations.map(({ key, amount }) => [key, amount]),
    [
      ['a', 3],
      ['a', 2],
    ],
  );
  answer(t, lane, ({ amount }) => (amount === 3 ? failure : 9));
  t.deepEqual([...first.outcomes, ...second.outcomes], ['ok', 'ok']);
  t.deepEqual(
    [first, second].map(({ request }) => request.hits[0]?.after),
    [2 ** 63, 9],
  );
});

test('beyond two batches in flight, one more is sent each 5 ms', async (t) => {
  const { store, lanes, clock } = setUp({ lanes: 4 });
  const sent = () => lanes.map((lane) => lane.sent.length);
  for (let i = 0; i < 4; i++) {
    count(store, [hit('a')]);
    await tick();
  }
  t.deepEqual(sent(), [1, 1, 0, 0]);
  clock.advance(5);
  count(store, [hit('a')]);
  await tick();
  count(store, [hit('a')]);
  await tick();
  t.deepEqual(sent(), [1, 1, 1, 0]);
  // Without a further request it is noticed when deadlines are looked at.
  clock.advance(25);
  t.deepEqual(sent(), [1, 1, 1, 1]);
});

test('an empty pool with ERROR fails those that waited long enough, and no other', async (t) => {
  const { store, lane, clock } = setUp({ onEmptyPool: { behavior: 'error', waitMs: 100 } });
  count(store, [hit('busy')]);
  await tick();
  const early = count(store, [hit('a')]);
  await tick();
  clock.advance(75);
  const late = count(store, [hit('a')]);
  clock.advance(50);
  t.deepEqual(early.outcomes, ['store: no connection was free for 100 ms']);
  t.deepEqual(late.outcomes, []);
  answer(t, lane, () => 1);
  await tick();
  answer(t, lane, () => 2);
  t.deepEqual(late.outcomes, ['ok']);
});

test('an empty pool with CREATE gets one lane more, which is given up when it is not needed', async (t) => {
  const { store, lane, deps, clock } = setUp({
    onEmptyPool: { behavior: 'create', waitMs: 100 },
  });
  count(store, [hit('busy')]);
  await tick();
  const waited = count(store, [hit('a')]);
  clock.advance(75);
  t.false(deps.overflow.ready);
  clock.advance(50);
  const { overflow } = deps;
  t.true(overflow.ready);
  store.lanesChanged();
  await tick();
  t.is(overflow.sent.length, 1);
  const next = count(store, [hit('b')]);
  answer(t, overflow, () => 1);
  await tick();
  t.deepEqual(waited.outcomes, ['ok']);
  // The pool is still empty and somebody waits.
  t.true(overflow.ready);
  t.is(overflow.sent.length, 1);
  answer(t, lane, () => 1);
  answer(t, overflow, () => 1);
  await tick();
  t.deepEqual(next.outcomes, ['ok']);
  t.false(deps.overflow.ready);
});

test('an empty pool gets no lane more when the breaker opens', async (t) => {
  const { store, deps, clock } = setUp({ onEmptyPool: { behavior: 'create', waitMs: 1_000 } });
  count(store, [hit('busy')]);
  await tick();
  const waiting = count(store, [hit('a')]);
  clock.advance(1_000);
  t.is(deps.breaker.state, 'open');
  t.false(deps.overflow.ready);
  await tick();
  t.deepEqual(waiting.outcomes, ['store: no answer in 1000 ms']);
});

test('an empty pool with WAIT lets requests wait to their deadline', async (t) => {
  const { store, clock, deps } = setUp({ onEmptyPool: { behavior: 'wait', waitMs: 0 } });
  count(store, [hit('busy')]);
  await tick();
  const waited = count(store, [hit('a')], 900);
  clock.advance(850);
  t.deepEqual(waited.outcomes, []);
  clock.advance(75);
  t.deepEqual(waited.outcomes, ['store: the deadline passed before the hits were sent']);
  t.false(deps.overflow.ready);
});

const leavesAfter = (windowMs: number, sinceMs: number) => {
  const startedMs = systemClock.monotonicMs();
  return new Promise<number>((resolve) => {
    createPipelineWindow(windowMs, systemClock)(sinceMs, () =>
      resolve(systemClock.monotonicMs() - startedMs),
    );
  });
};

test('a window below a millisecond is waited for', async (t) => {
  t.true((await leavesAfter(0.9, systemClock.monotonicMs())) >= 0.85);
});

test('a window that has passed already is not waited for again', async (t) => {
  const waits: number[] = [];
  for (let turn = 0; turn < 20; turn++) {
    waits.push(await leavesAfter(0.9, systemClock.monotonicMs() - 1));
  }
  // The shortest, because the process may stand still at any time.
  t.true(Math.min(...waits) < 0.85);
});
