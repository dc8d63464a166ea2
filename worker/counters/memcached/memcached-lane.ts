// A lane to memcached: one connection, opened on demand, to read and change the counters of its keys. A key always uses
// the same lane, and a server answers a connection in order, so a reading lacks exactly the changes that are pending
// when it is answered.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { RepeatedLog } from '../../../shared/repeated-log.ts';
import type { KnownExpiries } from '../known-expiries.ts';
import type { Answer, Connection } from './connection.ts';
import { type CounterValue, parseCounterValue } from './counter-value.ts';
import type { MemcachedMetrics } from './memcached-metrics.ts';
import { type Change, createPendingChanges } from './pending-changes.ts';

/** Limit of the keys in one command: lines stay short enough for proxies. */
const maxKeysPerGet = 64;
/** Limit of pending changes of a lane; further ones are not counted. */
export const maxPendingChanges = 65_536;
/** memcached interprets lifetimes above 30 days as dates. */
const maxRelativeSeconds = 2_592_000;
/** Dates are signed numbers of 32 bits: a later one would be long past. */
const lastDate = 2 ** 31 - 1;
const never = 0;
/** Known lifetimes need no end by the clock: an expired item is not found, and added again. */
const noTime = 0;

export interface MemcachedLaneDeps {
  /** `onEnd` is the callback of the connection. */
  readonly open: (onEnd: (reason: Error, wasSilent: boolean) => void) => Promise<Connection>;
  /** Whether the server is known to be unreachable: if so, nothing is read, and no connection opened. */
  readonly isAway: () => boolean;
  readonly clock: Clock;
  readonly metrics: MemcachedMetrics;
  /** A counter's lifetime is its window plus a random whole number of seconds below this. */
  readonly jitterMaxSeconds: number;
  readonly knownExpiries: KnownExpiries;
  /**
   * Called once each time the connection failed or ended. `isAway`: because the server does not answer, not because it
   * closed the connection.
   */
  readonly onFailure: (reason: string, isAway: boolean) => void;
  /** Called when the server has answered. */
  readonly onAnswer: () => void;
  /** The log of unexpected answers of the server. */
  readonly refusals: RepeatedLog;
  /** Called when nothing is pending. */
  readonly onIdle: () => void;
}

/** Counters by key; missing ones are left out. */
export type Counters = ReadonlyMap<string, CounterValue>;

type Reading = (connection: Connection) => void;

export class MemcachedLane {
  readonly #deps: MemcachedLaneDeps;
  readonly #clock;
  readonly #metrics;
  readonly #refusals;
  readonly #pending = createPendingChanges(maxPendingChanges);
  #connection: Connection | undefined;
  #connecting = false;
  #closed = false;
  #openReadings = 0;
  /** Readings that wait for the connection, and how each fails without it. */
  #waiting: { readonly start: Reading; readonly fail: () => void }[] = [];

  constructor(deps: MemcachedLaneDeps) {
    this.#deps = deps;
    this.#clock = deps.clock;
    this.#metrics = deps.metrics;
    this.#refusals = deps.refusals;
  }

  /** False when connecting is pointless. */
  #connect(): boolean {
    if (this.#connection !== undefined || this.#connecting) return true;
    if (this.#closed || this.#deps.isAway()) return false;
    this.#connecting = true;
    this.#deps
      .open((reason, wasSilent) => this.#ended(reason, wasSilent))
      .then(
        (next) => this.#opened(next),
        (error) => this.#failedToOpen(error),
      );
    return true;
  }

  #opened(next: Connection): void {
    this.#connecting = false;
    if (this.#closed) {
      next.destroy();
      return;
    }
    this.#connection = next;
    const readings = this.#waiting;
    this.#waiting = [];
    for (const { start } of readings) start(next);
    this.flush();
  }

  #failedToOpen(error: unknown): void {
    this.#connecting = false;
    if (this.#closed) return;
    this.#deps.onFailure(errorText(error), true);
    const readings = this.#waiting;
    this.#waiting = [];
    for (const { fail } of readings) fail();
    this.#dropChanges();
  }

  #ended(reason: Error, wasSilent: boolean): void {
    this.#connection = undefined;
    // The end of an idle connection causes no failure.
    if (!this.#isIdle() && !this.#closed) this.#deps.onFailure(reason.message, wasSilent);
  }

  #isIdle(): boolean {
    return this.#openReadings === 0 && this.#pending.size === 0;
  }

  /** Reads counters. Calls `done` once, never during `read`: with undefined when reading failed. */
  read(keys: readonly string[], done: (counters: Counters | undefined) => void): void {
    this.#openReadings++;
    const finish = (counters: Counters | undefined) => {
      this.#openReadings--;
      done(counters);
      this.#checkIdle();
    };
    const start = (over: Connection) => this.#startReading(over, keys, finish);
    if (this.#deps.isAway()) setImmediate(finish, undefined);
    else if (this.#connection !== undefined) start(this.#connection);
    else if (this.#connect()) this.#waiting.push({ start, fail: () => finish(undefined) });
    else setImmediate(finish, undefined);
  }

  #startReading(
    over: Connection,
    keys: readonly string[],
    finish: (counters: Counters | undefined) => void,
  ): void {
    const counters = new Map<string, CounterValue>();
    let left = Math.ceil(keys.length / maxKeysPerGet);
    let failed = false;
    for (let at = 0; at < keys.length; at += maxKeysPerGet) {
      over.send(`gets ${keys.slice(at, at + maxKeysPerGet).join(' ')}\r\n`, (answer) => {
        if (!this.#collect(answer, counters)) failed = true;
        if (--left === 0) finish(failed ? undefined : counters);
      });
    }
  }

  #collect(answer: Answer, counters: Map<string, CounterValue>): boolean {
    // The end of the connection was already reported.
    if (answer instanceof Error) return false;
    this.#deps.onAnswer();
    if (typeof answer === 'string') {
      this.#refusals.report(`counters cannot be read: ${describeRefusal(answer)}`);
      return false;
    }
    for (const [key, text] of answer) {
      const value = text === undefined ? undefined : parseCounterValue(text);
      if (value === undefined) this.#refusals.report(`the value of "${key}" is not a counter`);
      counters.set(key, value ?? 0);
    }
    return true;
  }

  /** Adds to or subtracts from a counter in the background, from the next `flush` on. */
  change(kind: Change['kind'], key: string, amount: number | bigint, windowSeconds: number): void {
    if (this.#pending.push(kind, key, amount, windowSeconds)) return;
    if (kind === 'add') this.#metrics.incrementError.add(1);
    this.#refusals.report(`hits are not counted: ${maxPendingChanges} changes are already pending`);
  }

  flush(): void {
    if (this.#pending.size === 0) return;
    if (this.#connection !== undefined) {
      for (const change of this.#pending.removeWritable()) this.#write(change, this.#connection);
    } else if (!this.#connect()) {
      this.#dropChanges();
    }
  }

  #dropChanges(): void {
    for (const { kind } of this.#pending.dropUnwritten()) {
      if (kind === 'add') this.#metrics.incrementError.add(1);
    }
    this.#checkIdle();
  }

  #write(change: Change, over: Connection): void {
    change.isWritten = true;
    if (change.kind === 'add') this.#increment(change, over, 'first');
    else this.#decrement(change, over);
  }

  #increment(change: Change, over: Connection, turn: 'first' | 'after adding'): void {
    over.send(`incr ${change.key} ${change.amount}\r\n`, (answer) => {
      if (isNumber(answer)) {
        this.#metrics.incrementSuccess.add(1);
        this.#touch(change, over);
      } else if (answer === 'NOT_FOUND' && turn === 'first') {
        this.#metrics.incrementMiss.add(1);
        this.#add(change, over);
      } else {
        (answer === 'NOT_FOUND' ? this.#metrics.incrementMiss : this.#metrics.incrementError).add(
          1,
        );
        this.#fail(change, answer);
      }
    });
  }

  #add(change: Change, over: Connection): void {
    const { key, amount } = change;
    const value = String(amount);
    over.send(
      `add ${key} 0 ${this.#drawExpiry(change)} ${value.length}\r\n${value}\r\n`,
      (answer) => {
        if (answer === 'STORED') {
          this.#metrics.addSuccess.add(1);
          this.#remember(change);
          this.#finish(change);
        } else if (answer === 'NOT_STORED') {
          this.#metrics.addNotStored.add(1);
          this.#increment(change, over, 'after adding');
        } else {
          this.#metrics.addError.add(1);
          this.#fail(change, answer);
        }
      },
    );
  }

  /** Extends the lifetime, which may be that of a shorter window, of another limit with the same key. */
  #touch(change: Change, over: Connection): void {
    const { key, windowSeconds } = change;
    if (this.#deps.knownExpiries.has(key, windowSeconds, noTime)) {
      this.#finish(change);
      return;
    }
    over.send(`touch ${key} ${this.#drawExpiry(change)}\r\n`, (answer) => {
      // A server or proxy without this command is not asked again for this key.
      if (answer !== 'NOT_FOUND' && !(answer instanceof Error)) this.#remember(change);
      this.#finish(change);
    });
  }

  #remember({ key, windowSeconds }: Change): void {
    this.#deps.knownExpiries.remember(key, windowSeconds, noTime);
  }

  #decrement(change: Change, over: Connection): void {
    over.send(`decr ${change.key} ${change.amount}\r\n`, (answer) => {
      if (isNumber(answer) || answer === 'NOT_FOUND') this.#finish(change);
      else this.#fail(change, answer);
    });
  }

  /**
   * A second more than the window: the server counts whole seconds, and an item with a lifetime of N expires after N -
   * 1 to N.
   */
  #drawExpiry({ windowSeconds }: Change): number {
    const lifetime = windowSeconds + 1 + Math.floor(Math.random() * this.#deps.jitterMaxSeconds);
    if (lifetime <= maxRelativeSeconds) return lifetime;
    const date = Math.floor(this.#clock.wallMs() / 1000) + lifetime;
    return date > lastDate ? never : date;
  }

  #fail(change: Change, answer: Answer): void {
    // The end of the connection was already reported.
    if (typeof answer === 'string') {
      this.#refusals.report(`hits on "${change.key}" are not counted: ${describeRefusal(answer)}`);
    }
    this.#finish(change);
  }

  #finish(change: Change): void {
    this.#pending.finish(change);
    this.flush();
    this.#checkIdle();
  }

  #checkIdle(): void {
    if (this.#isIdle()) this.#deps.onIdle();
  }

  /** Ends the connection if this loses no change. */
  rest(): void {
    if (this.#isIdle()) this.#connection?.destroy();
  }

  /** Ends the connection. Returns how many changes are lost with it. */
  close(): number {
    this.#closed = true;
    const lost = this.#pending.size;
    this.#connection?.destroy();
    const readings = this.#waiting;
    this.#waiting = [];
    for (const { fail } of readings) fail();
    this.#pending.dropUnwritten();
    return lost;
  }

  /** Whether no reading or change is pending. */
  get isIdle(): boolean {
    return this.#isIdle();
  }

  /** Connects, unless connected, to detect failures early. */
  warm(): void {
    this.#connect();
  }

  /** The counter with all pending changes; call it when a reading is answered. */
  project(key: string, counter: CounterValue | undefined) {
    return this.#pending.project(key, counter);
  }
}

function isNumber(answer: Answer): boolean {
  return typeof answer === 'string' && /^\d+ *$/.test(answer);
}

/** The remedies for refusals, which the server's own texts do not name. */
const remedies: readonly (readonly [of: RegExp, remedy: string])[] = [
  [/out of memory/, 'give it more memory (memcached -m)'],
  [/too large/, 'raise its item size (memcached -I)'],
  [
    /unauthenticated/,
    'workers send no credentials: start it without authentication (memcached -S, -Y)',
  ],
  [
    /Too many open connections/,
    'raise its connection limit (memcached -c), or write a smaller MEMSTORE_MAX_IDLE_CONNS (MEMCACHE_MAX_IDLE_CONNS)',
  ],
  [
    /non-numeric/,
    'another program has written it: set a CACHE_KEY_PREFIX that no other program uses',
  ],
  [/^-/, 'is it Redis? then write BACKEND_TYPE=redis, and its address in KVSTORE_URL (REDIS_URL)'],
];

function describeRefusal(answer: string): string {
  const remedy = remedies.find(([of]) => of.test(answer))?.[1];
  const reply = `it answered "${answer.slice(0, 120)}"`;
  return remedy === undefined ? reply : `${reply}; ${remedy}`;
}
