// A lane to memcached: one connection, opened on demand, to read and change the counters of its keys. A
// key always uses the same lane, and a server answers a connection in order, so a reading lacks exactly
// the changes that are pending when it is answered.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { RepeatedLog } from '../../../shared/repeated-log.ts';
import type { KnownExpiries } from '../known-expiries.ts';
import type { Answer, Connection } from './connection.ts';
import { type CounterValue, parseCounterValue } from './counter-value.ts';
import type { MemcachedMetrics } from './memcached-metrics.ts';
import { type Change, createPendingChanges } from './pending-changes.ts';

/** Keys in one command, which keeps lines short enough for proxies. */
const maxKeysPerGet = 64;
/** Limit of pending changes of a lane; further ones are not counted. */
export const maxPendingChanges = 65_536;
/** memcached reads lifetimes above 30 days as dates. */
const maxRelativeSeconds = 2_592_000;
/** What a key is known to live for need not end by a clock: an item that has expired is not found, and added anew. */
const noTime = 0;

export interface MemcachedLaneDeps {
  /** Its `onEnd` is called for connections. */
  readonly open: (onEnd: (reason: Error, wasSilent: boolean) => void) => Promise<Connection>;
  /** Whether the server is known to be unreachable: then nothing is read, and no connection opened. */
  readonly isAway: () => boolean;
  readonly clock: Clock;
  readonly metrics: MemcachedMetrics;
  /** A counter's lifetime is its window plus a random whole number of seconds below this. */
  readonly jitterMaxSeconds: number;
  readonly knownExpiries: KnownExpiries;
  /** The connection failed or ended; called once each time. `isAway`: because the server does not answer,
   * not because it closed the connection. */
  readonly onFailure: (reason: string, isAway: boolean) => void;
  /** The server has answered. */
  readonly onAnswer: () => void;
  /** The log of unexpected answers of the server. */
  readonly refusals: RepeatedLog;
  /** Nothing is pending any more. */
  readonly onIdle: () => void;
}

/** Counters by key, without missing ones. */
export type Counters = ReadonlyMap<string, CounterValue>;

export interface MemcachedLane {
  /** Whether no reading or change is pending. */
  readonly isIdle: boolean;
  /** Connects, unless connected, to detect failures early. */
  warm(): void;
  /** Reads counters. `done` is called once, never from inside, with undefined when that failed. */
  read(keys: readonly string[], done: (counters: Counters | undefined) => void): void;
  /** The counter with all pending changes; call it when a reading is answered. */
  project(key: string, value: CounterValue): CounterValue;
  /** Adds to or takes from a counter in the background, from the next `flush` on. */
  change(kind: Change['kind'], key: string, amount: number | bigint, windowSeconds: number): void;
  flush(): void;
  /** Ends the connection if no change is lost by that. */
  rest(): void;
  /** Ends the connection. Returns how many changes are lost with it. */
  close(): number;
}

type Reading = (connection: Connection) => void;

export function createMemcachedLane(deps: MemcachedLaneDeps): MemcachedLane {
  const { clock, metrics, refusals } = deps;
  const pending = createPendingChanges(maxPendingChanges);
  let connection: Connection | undefined;
  let connecting = false;
  let closed = false;
  let openReadings = 0;
  /** Readings that wait for the connection, and how they fail without it. */
  let waiting: { readonly start: Reading; readonly fail: () => void }[] = [];

  return {
    get isIdle() {
      return isIdle();
    },
    warm: () => void connect(),
    read,
    project: pending.project,
    change,
    flush,
    rest,
    close,
  };

  /** False when it is pointless. */
  function connect(): boolean {
    if (connection !== undefined || connecting) return true;
    if (closed || deps.isAway()) return false;
    connecting = true;
    deps.open(ended).then(opened, failedToOpen);
    return true;
  }

  function opened(next: Connection): void {
    connecting = false;
    if (closed) {
      next.destroy();
      return;
    }
    connection = next;
    const readings = waiting;
    waiting = [];
    for (const { start } of readings) start(next);
    flush();
  }

  function failedToOpen(error: unknown): void {
    connecting = false;
    if (closed) return;
    deps.onFailure(errorText(error), true);
    const readings = waiting;
    waiting = [];
    for (const { fail } of readings) fail();
    dropChanges();
  }

  function ended(reason: Error, wasSilent: boolean): void {
    connection = undefined;
    // The end of an idle connection harms nobody.
    if (!isIdle() && !closed) deps.onFailure(reason.message, wasSilent);
  }

  function isIdle(): boolean {
    return openReadings === 0 && pending.size === 0;
  }

  function read(keys: readonly string[], done: (counters: Counters | undefined) => void): void {
    openReadings++;
    const finish = (counters: Counters | undefined) => {
      openReadings--;
      done(counters);
      checkIdle();
    };
    const start = (over: Connection) => startReading(over, keys, finish);
    if (deps.isAway()) setImmediate(finish, undefined);
    else if (connection !== undefined) start(connection);
    else if (connect()) waiting.push({ start, fail: () => finish(undefined) });
    else setImmediate(finish, undefined);
  }

  function startReading(
    over: Connection,
    keys: readonly string[],
    finish: (counters: Counters | undefined) => void,
  ): void {
    const counters = new Map<string, CounterValue>();
    let left = Math.ceil(keys.length / maxKeysPerGet);
    let failed = false;
    for (let at = 0; at < keys.length; at += maxKeysPerGet) {
      over.send(`gets ${keys.slice(at, at + maxKeysPerGet).join(' ')}\r\n`, (answer) => {
        if (!collect(answer, counters)) failed = true;
        if (--left === 0) finish(failed ? undefined : counters);
      });
    }
  }

  function collect(answer: Answer, counters: Map<string, CounterValue>): boolean {
    // The connection's end was told before.
    if (answer instanceof Error) return false;
    deps.onAnswer();
    if (typeof answer === 'string') {
      refusals.report(`counters cannot be read: ${describeRefusal(answer)}`);
      return false;
    }
    for (const [key, text] of answer) {
      const value = text === undefined ? undefined : parseCounterValue(text);
      if (value === undefined) refusals.report(`the value of "${key}" is not a counter`);
      counters.set(key, value ?? 0);
    }
    return true;
  }

  function change(
    kind: Change['kind'],
    key: string,
    amount: number | bigint,
    windowSeconds: number,
  ): void {
    if (pending.push(kind, key, amount, windowSeconds)) return;
    if (kind === 'add') metrics.incrementError.add(1);
    refusals.report(`hits are not counted: ${maxPendingChanges} changes are on their way already`);
  }

  function flush(): void {
    if (pending.size === 0) return;
    if (connection !== undefined) {
      for (const change of pending.takeWritable()) write(change, connection);
    } else if (!connect()) {
      dropChanges();
    }
  }

  function dropChanges(): void {
    for (const { kind } of pending.dropUnwritten()) {
      if (kind === 'add') metrics.incrementError.add(1);
    }
    checkIdle();
  }

  function write(change: Change, over: Connection): void {
    change.isWritten = true;
    if (change.kind === 'add') increment(change, over, 'first');
    else decrement(change, over);
  }

  function increment(change: Change, over: Connection, turn: 'first' | 'after adding'): void {
    over.send(`incr ${change.key} ${change.amount}\r\n`, (answer) => {
      if (isNumber(answer)) {
        metrics.incrementSuccess.add(1);
        keepAlive(change, over);
      } else if (answer === 'NOT_FOUND' && turn === 'first') {
        metrics.incrementMiss.add(1);
        add(change, over);
      } else {
        (answer === 'NOT_FOUND' ? metrics.incrementMiss : metrics.incrementError).add(1);
        fail(change, answer);
      }
    });
  }

  function add(change: Change, over: Connection): void {
    const { key, amount } = change;
    const value = String(amount);
    over.send(`add ${key} 0 ${drawExpiry(change)} ${value.length}\r\n${value}\r\n`, (answer) => {
      if (answer === 'STORED') {
        metrics.addSuccess.add(1);
        remember(change);
        finish(change);
      } else if (answer === 'NOT_STORED') {
        metrics.addNotStored.add(1);
        increment(change, over, 'after adding');
      } else {
        metrics.addError.add(1);
        fail(change, answer);
      }
    });
  }

  /** Its lifetime may be that of a shorter window, of another limit on the same entries. */
  function keepAlive(change: Change, over: Connection): void {
    const { key, windowSeconds } = change;
    if (deps.knownExpiries.has(key, windowSeconds, noTime)) {
      finish(change);
      return;
    }
    over.send(`touch ${key} ${drawExpiry(change)}\r\n`, (answer) => {
      // A server or proxy that does not know the command is not asked again for this key.
      if (answer !== 'NOT_FOUND' && !(answer instanceof Error)) remember(change);
      finish(change);
    });
  }

  function remember({ key, windowSeconds }: Change): void {
    deps.knownExpiries.remember(key, windowSeconds, noTime);
  }

  function decrement(change: Change, over: Connection): void {
    over.send(`decr ${change.key} ${change.amount}\r\n`, (answer) => {
      if (isNumber(answer) || answer === 'NOT_FOUND') finish(change);
      else fail(change, answer);
    });
  }

  /** A second more than the window: the server counts whole seconds, and an item with a lifetime of N
   * expires after N - 1 to N. */
  function drawExpiry({ windowSeconds }: Change): number {
    const lifetime = windowSeconds + 1 + Math.floor(Math.random() * deps.jitterMaxSeconds);
    if (lifetime <= maxRelativeSeconds) return lifetime;
    return Math.floor(clock.wallMs() / 1000) + lifetime;
  }

  function fail(change: Change, answer: Answer): void {
    // The connection's end was told before.
    if (typeof answer === 'string') {
      refusals.report(`hits on "${change.key}" are not counted: ${describeRefusal(answer)}`);
    }
    finish(change);
  }

  function finish(change: Change): void {
    pending.finish(change);
    flush();
    checkIdle();
  }

  function checkIdle(): void {
    if (isIdle()) deps.onIdle();
  }

  function rest(): void {
    if (isIdle()) connection?.destroy();
  }

  function close(): number {
    closed = true;
    const lost = pending.size;
    connection?.destroy();
    const readings = waiting;
    waiting = [];
    for (const { fail } of readings) fail();
    pending.dropUnwritten();
    return lost;
  }
}

function isNumber(answer: Answer): boolean {
  return typeof answer === 'string' && /^\d+ *$/.test(answer);
}

/** What to change where a server refuses, which its words leave out. */
const remedies: readonly (readonly [of: RegExp, remedy: string])[] = [
  [/out of memory/, 'give it more memory (memcached -m)'],
  [/too large/, 'let it take larger items (memcached -I)'],
  [/unauthenticated/, 'workers send no credentials: start it without them (memcached -S, -Y)'],
  [
    /Too many open connections/,
    'let it take more (memcached -c), or write a smaller MEMSTORE_MAX_IDLE_CONNS (MEMCACHE_MAX_IDLE_CONNS)',
  ],
  [/non-numeric/, 'another program has set it: write a CACHE_KEY_PREFIX that no other program has'],
  [/^-/, 'is it Redis? then write BACKEND_TYPE=redis, and its address in KVSTORE_URL (REDIS_URL)'],
];

function describeRefusal(answer: string): string {
  const remedy = remedies.find(([of]) => of.test(answer))?.[1];
  const said = `it said "${answer.slice(0, 120)}"`;
  return remedy === undefined ? said : `${said}; ${remedy}`;
}
