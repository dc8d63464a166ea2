// Tests how requests become batches and when they time out, with lanes and a clock that the test controls:
// batching.txt.
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../../shared/clock.ts';
import { createHit } from '../../../test/support/counting.ts';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { testScenarios } from '../../../test/support/scenarios.ts';
import { createBreaker } from '../failure/breaker.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import type { CountRequest } from '../store.ts';
import { Batching, createPipelineWindow, type EmptyPoolRule, type Lane } from './batching.ts';
import { isLost, type RawReply, ReplyError } from './connection.ts';
import { createScriptSupport } from './script-support.ts';

/** A command, without the EXPIRE that may follow. */
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
    isShown?: boolean;
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
          // Unconfirmed EXPIREs are sent with each increment.
          done(isExpiry.map((is) => (is ? null : (rest.shift() ?? null))));
        },
      });
    },
    reset: (reason) => resets.push(reason),
  };
}

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
      describeRemedy: () => undefined,
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
  const store = new Batching(deps);
  const [lane] = lanes as [FakeLane, ...FakeLane[]];
  return { store, lanes, lane, deps, clock, failures, log };
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

  get #lanes(): readonly FakeLane[] {
    return [...this.#of.lanes, this.#of.deps.overflow];
  }

  async run([command = '', ...words]: readonly string[]): Promise<string> {
    this.#step(command, words);
    await tick();
    this.#look();
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
    else if (command === 'redirect') lane?.sent[0]?.onAnswer();
    else if (command === 'advance') clock.advance(number);
    else if (command === 'stall') clock.stall(number);
    else if (command === 'timers') this.#events.push(`${clock.pending}`);
    else if (command === 'drain') {
      void store.drain(number).then(() => this.#events.push('drained'));
    } else if (command === 'away' || command === 'back') {
      if (lane) lane.ready = command === 'back';
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
  #answer(lane: FakeLane | undefined, words: readonly string[]): void {
    const batch = lane?.sent.shift();
    if (words[0] === 'lost') batch?.done([new Error('the connection was closed')]);
    else {
      batch?.done(
        batch.operations.map(({ key, amount }) => {
          const own = words.find(
            (word) => word.startsWith(`${key}=`) || word.startsWith(`${key}+${amount}=`),
          );
          const value = (own ?? words[0] ?? '').split('=').at(-1) ?? '';
          return /^\d+$/.test(value) ? Number(value) : new ReplyError(value);
        }),
      );
    }
  }

  /** The visible state of lanes, breaker and log. */
  #look(): void {
    const { deps, log, lanes, failures } = this.#of;
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
    const { ready } = deps.overflow;
    if (state !== this.#shown.breaker) this.#events.push(`the breaker is ${state}`);
    if (ready !== this.#shown.overflow)
      this.#events.push(`overflow is ${ready ? 'open' : 'closed'}`);
    this.#events.push(...log.lines.slice(this.#shown.log));
    this.#shown = { breaker: state, overflow: ready, log: log.lines.length };
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
  lane.ready = false;
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
  lane.ready = true;
  store.lanesChanged();
  await tick();
  const keys = lane.sent[0]?.operations.map(({ key }) => key);
  t.deepEqual(keys, ['kept', 'again']);
  t.deepEqual(log.lines, ['error a decision failed when its hits were counted: broken on purpose']);
});

/** The time of leaving, in milliseconds after `sinceMs`. */
const leavesAfter = (windowMs: number, sinceMs: number) =>
  new Promise<number>((resolve) => {
    createPipelineWindow(windowMs, systemClock)(sinceMs, () =>
      resolve(systemClock.monotonicMs() - sinceMs),
    );
  });

test('a window below a millisecond is waited for', async (t) => {
  t.true((await leavesAfter(0.9, systemClock.monotonicMs())) >= 0.85);
});

test('a window that has already passed is not waited for again', async (t) => {
  const waits: number[] = [];
  for (let turn = 0; turn < 20; turn++) {
    waits.push(await leavesAfter(0.9, systemClock.monotonicMs() - 1));
  }
  // The shortest, because the process may be suspended at any time.
  t.true(Math.min(...waits) < 1.85);
});
