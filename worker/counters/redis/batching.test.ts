// Tests how requests become batches and when they time out, with lanes and a clock that the test controls:
// batching.txt.
import test, { type ExecutionContext } from 'ava';
import type { Clock } from '../../../shared/clock.ts';
import { createHit } from '../../../test/support/counting.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createOperationDeps } from '../../../test/support/operation-deps.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { testScenarios } from '../../../test/support/scenarios.ts';
import { pausedMs } from '../../fine-pause.ts';
import { createBreaker } from '../failure/breaker.ts';
import type { CountRequest } from '../store.ts';
import { Batching, type EmptyPoolRule } from './batching.ts';
import { type Connection, type RawReply, ReplyError } from './connection.ts';
import { createPipelineWindow } from './pipeline-window.ts';
import { RedisLane } from './redis-lane.ts';

/** A command, without the EXPIRE that may follow. */
interface Operation {
  readonly command: string;
  readonly key: string;
  readonly amount: number;
}

/** Commands that wait for the test to answer them. */
interface Sent {
  readonly operations: readonly Operation[];
  readonly done: (replies: RawReply[]) => void;
  isShown?: boolean;
}

/** A lane to a server that the test plays. */
class TestLane {
  readonly lane: RedisLane;
  readonly sent: Sent[] = [];
  readonly resets: string[] = [];
  #redirects = false;
  #isAway = false;
  #notifyBack = () => {};
  #endConnection = () => {};

  constructor(clock: Clock, reconnects: boolean, onOpen: () => void) {
    this.lane = new RedisLane({
      clock,
      open: () => this.#open(),
      timeoutMs: 1_000,
      maxAgeMs: undefined,
      reconnects,
      closeOnReadonlyError: false,
      onOpen,
      onEnd: (reason, byUs) => {
        if (byUs && reason !== 'closed') this.resets.push(reason);
      },
      redirect: (commands, replies, done) => {
        if (this.#redirects) this.#receive(commands, done, true);
        else done(replies);
      },
      onFailure: () => {},
    });
  }

  /** Redirects the first commands: the next answer is that of another node. */
  redirect(): void {
    this.#redirects = true;
    this.sent.shift()?.done([null]);
    this.#redirects = false;
  }

  setAway(isAway: boolean): void {
    this.#isAway = isAway;
    (isAway ? this.#endConnection : this.#notifyBack)();
  }

  async #open(): Promise<Connection> {
    while (this.#isAway) {
      await new Promise<void>((resolve) => {
        this.#notifyBack = resolve;
      });
    }
    const ended = Promise.withResolvers<string>();
    this.#endConnection = () => ended.resolve('the connection was closed');
    return {
      send: (commands, done) => this.#receive(commands, done),
      ask: async () => 1,
      destroy: () => {
        for (const { done } of this.sent.splice(0)) setImmediate(done, [lost]);
      },
      ended: ended.promise,
    };
  }

  #receive(commands: readonly string[], done: Sent['done'], isShown = false): void {
    const parsed = commands.map(parseCommand);
    const isExpiry = parsed.map(({ command }) => command === 'EXPIRE');
    this.sent.push({
      operations: parsed.filter((_, index) => !isExpiry[index]),
      done(replies) {
        const rest = [...replies];
        // Unconfirmed EXPIREs are sent with each increment.
        done(isExpiry.map((is) => (is ? null : (rest.shift() ?? null))));
      },
      isShown,
    });
  }
}

const lost = new Error('the connection was closed');

/** An array of texts: its length, then the length of each text before the text. */
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
  const clock = createManualClock();
  const changed = () => store.lanesChanged();
  const lanes = Array.from(
    { length: options.lanes ?? 1 },
    () => new TestLane(clock, true, changed),
  );
  const overflow = new TestLane(clock, false, changed);
  const failures: string[] = [];
  const log = createRecordedLog();
  const deps = {
    name: 'store',
    operations: createOperationDeps(clock),
    lanes: lanes.map(({ lane }) => lane),
    overflow: overflow.lane,
    openOverflow: () => void overflow.lane.tryToOpen(new AbortController().signal),
    closeOverflow: () => overflow.lane.halt('closed'),
    breaker: createBreaker({ name: 'store', clock, onChange: () => {} }),
    clock,
    log,
    onRequestFailure: ({ message }: Error) => failures.push(message),
    patienceMs: 1_000,
    onEmptyPool: options.onEmptyPool ?? { behavior: 'wait', waitMs: 0 },
    pipelineWindowMs: options.pipelineWindowMs ?? 0,
  };
  const store = new Batching(deps);
  for (const { lane } of lanes) lane.stayOpen();
  const [lane] = lanes as [TestLane, ...TestLane[]];
  return { store, lanes, lane, overflow, deps, clock, failures, log };
}

const hit = (key: string, hits = 1, limit = 10) =>
  createHit({ key, hits, limit, unit: 'minute', windowSeconds: 60 });

const tick = () => new Promise((resolve) => setImmediate(resolve));

/** One scenario: `r1` is its first request. Events are recorded as they happen. */
class Scene {
  readonly #of: ReturnType<typeof setUp>;
  readonly #requests: CountRequest[] = [];
  readonly #events: string[] = [];
  #shown = { breaker: 'closed', overflow: false, log: 0 };
  /** Failures of the store that were reported. */
  #failed = 0;

  constructor(options: SetUpOptions) {
    this.#of = setUp(options);
  }

  get #lanes(): readonly TestLane[] {
    return [...this.#of.lanes, this.#of.overflow];
  }

  async run([command = '', ...words]: readonly string[]): Promise<string> {
    this.#step(command, words);
    await tick();
    this.#watch();
    return this.#events.splice(0).join('\n');
  }

  #step(command: string, words: readonly string[]): void {
    const { store, clock, deps, lanes } = this.#of;
    const [first = '', second = ''] = words;
    const number = Number(first);
    const lane = this.#lanes[first === 'overflow' ? lanes.length : number - 1];
    if (command === 'count') this.#count(words);
    else if (command === 'flood') {
      for (let at = 0; at < number; at++) this.#count([second.replace('#', String(at))], false);
    } else if (command === 'cancel') {
      const request = this.#requests[Number(first.slice(1)) - 1];
      if (request) request.cancelled = true;
    } else if (command === 'answer') this.#answer(lane, words.slice(1));
    else if (command === 'redirect') lane?.redirect();
    else if (command === 'advance') clock.advance(number);
    else if (command === 'stall') clock.stall(number);
    else if (command === 'timers') this.#events.push(`${clock.pending}`);
    else if (command === 'drain') {
      void store.drain(number).then(() => this.#events.push('drained'));
    } else if (command === 'away' || command === 'back') {
      lane?.setAway(command === 'away');
      store.lanesChanged();
    } else if (command === 'half-open') deps.breaker.halfOpen();
    else if (command === 'silent') deps.breaker.openOnTimeout('silent');
    else if (command === 'refused') {
      deps.breaker.open('refused');
      store.lanesChanged();
    } else throw new Error(`no command ${command}`);
  }

  /** `KEY*HITS ...`, `deadline=MS`, and `unless-over`. */
  #count(words: readonly string[], isReported = true): void {
    const hits = words.flatMap((word) => {
      const [, key, amount = '1'] = /^([\w#]+)(?:\*(\d+))?$/.exec(word) ?? [];
      return key === undefined ? [] : [hit(key, Number(amount))];
    });
    const [, deadlineMs = '10000'] = /deadline=(\d+)/.exec(words.join(' ')) ?? [];
    const name = `r${this.#requests.length + 1}`;
    const request: CountRequest = {
      hits,
      mode: words.includes('unless-over') ? 'add-unless-over' : 'add',
      deadlineMs: Number(deadlineMs),
      cancelled: false,
      settle: (error) => {
        const after = hits.map((each) => `${each.key} is ${each.after}`).join(', ');
        if (isReported || error) this.#events.push(`${name}: ${error?.message ?? after}`);
      },
    };
    this.#requests.push(request);
    this.#of.store.count(request);
  }

  /** Answers with a number for each operation, or with `KEY=NUMBER` or `KEY=TEXT` for those of a key. */
  #answer(lane: TestLane | undefined, words: readonly string[]): void {
    const batch = lane?.sent.shift();
    const answers = batch?.operations.map(({ key, amount }) => {
      const own = words.find(
        (word) => word.startsWith(`${key}=`) || word.startsWith(`${key}+${amount}=`),
      );
      const value = (own ?? words[0] ?? '').split('=').at(-1) ?? '';
      return /^\d+$/.test(value) ? Number(value) : new ReplyError(value);
    });
    batch?.done(words[0] === 'lost' ? [lost] : (answers ?? []));
  }

  /** The visible state of lanes, breaker and log. */
  #watch(): void {
    const { deps, log, lanes, overflow, failures } = this.#of;
    for (const [index, lane] of this.#lanes.entries()) {
      const name = index === lanes.length ? 'overflow' : `lane ${index + 1}`;
      for (const batch of lane.sent) {
        if (batch.isShown) continue;
        batch.isShown = true;
        const texts = batch.operations.map(({ command, key, amount }) =>
          command === 'GET' ? `${key}?` : `${key}+${amount}`,
        );
        const many = texts.length > 8 ? `${texts.length} operations` : texts.join(' ');
        this.#events.push(`${name}: ${many}`);
      }
      for (const reason of new Set(lane.resets.splice(0)))
        this.#events.push(`${name} is reset: ${reason}`);
    }
    const { state } = deps.breaker;
    const { isOpen } = overflow.lane;
    if (state !== this.#shown.breaker) this.#events.push(`the breaker is ${state}`);
    if (isOpen !== this.#shown.overflow)
      this.#events.push(`overflow is ${isOpen ? 'open' : 'closed'}`);
    this.#events.push(...log.lines.slice(this.#shown.log));
    this.#shown = { breaker: state, overflow: isOpen, log: log.lines.length };
    if (failures.length > this.#failed) this.#events.push(`failures reported: ${failures.length}`);
    this.#failed = failures.length;
  }
}

/** `pool lanes=2 window=5 empty=create after=100`. */
function toOptions(words: readonly string[]): SetUpOptions {
  const { lanes, window, empty, after } = Object.fromEntries(words.map((word) => word.split('=')));
  return {
    lanes: Number(lanes ?? 1),
    pipelineWindowMs: Number(window ?? 0),
    onEmptyPool: { behavior: empty ?? 'wait', waitMs: Number(after ?? 0) },
  };
}

const scenes = new WeakMap<ExecutionContext, Scene>();
testScenarios(test, new URL('batching.txt', import.meta.url), async (words, { t }) => {
  const isPool = words[0] === 'pool';
  const scene = scenes.get(t) ?? new Scene(toOptions(isPool ? words.slice(1) : []));
  scenes.set(t, scene);
  return { out: isPool ? '' : await scene.run(words) };
});

test('a settle that counts again does not lose the new request, and one that throws is logged', async (t) => {
  const { store, lane, clock, log } = setUp();
  lane.setAway(true);
  const request = { mode: 'add', cancelled: false } as const;
  const count = (key: string, settle = () => {}, deadlineMs = 10_000) =>
    store.count({ ...request, hits: [hit(key)], deadlineMs, settle });
  const throws = () => {
    throw new Error('broken on purpose');
  };
  count('a', () => count('again'), 50);
  count('b', throws, 50);
  count('kept');
  await tick();
  clock.advance(100);
  lane.setAway(false);
  store.lanesChanged();
  await tick();
  const keys = lane.sent[0]?.operations.map(({ key }) => key);
  t.deepEqual(keys, ['kept', 'again']);
  t.deepEqual(log.lines, ['error a decision failed when its hits were counted: broken on purpose']);
});

test.serial(
  'a window below a millisecond is slept through, less what has passed of it',
  async (t) => {
    const clock = createManualClock();
    const before = pausedMs();
    const sleep = () =>
      new Promise<void>((leave) => createPipelineWindow(0.9, clock)(0, leave)).then(
        () => pausedMs() - before,
      );
    const sleptMs = await sleep();
    t.true(sleptMs >= 0.85);
    clock.advance(1);
    t.is(await sleep(), sleptMs);
  },
);
