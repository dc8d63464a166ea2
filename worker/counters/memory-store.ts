// Counts in this process alone: exact, bounded and expiring. For trials and single workers; several
// processes count separately. Requests are executed one by one.
import type { Clock } from '../../shared/clock.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { owned } from '../../shared/owned-text.ts';
import { type LimiterCounter, openLimiterCounter } from './limiter.ts';
import {
  type CounterStore,
  type CounterStoreState,
  type CountRequest,
  findSuppressed,
  type Hit,
  type LimiterHit,
  needsReading,
  overflowed,
  settleLimiterHit,
  toMapKey,
} from './store.ts';
import { type Moment, readStored, type StoredLimiter, storeReading } from './stored-limiter.ts';
import { TextEntry, TextTable } from './text-table.ts';

/**
 * Limits of live counters, and of the characters in their stored keys. Beyond either, requests that need a new counter
 * fail: dropping a live one would lift a limit.
 */
export const maxCounters = 1_000_000;
export const maxCharacters = 268_435_456;
/** How many expired counters are dropped per tick, so that a window's end does not block the process. */
const maxDropsPerTick = 4_000;
/**
 * Counters that expire later than twice this time are listed for so many seconds together, and listed again when these
 * seconds begin: limits of a year would otherwise make a list for each of its seconds.
 */
const farSeconds = 1024;
/** Counters stay below this, as in the key-value store. */
const counterBound = 2n ** 63n;

class Counter extends TextEntry<Counter> {
  /** A bigint only above 2^53. */
  value: number | bigint = 0;
  /** Used instead of `value`, unless the limit is a fixed window. */
  limiter: StoredLimiter | undefined = undefined;
  /** The longest window of its hits: limits of several units may share a counter. */
  windowSeconds: number;
  expiresAtSecond: number;
  /** Its second in `byExpiry`: the expiry, an earlier second, or one second later. */
  listedAtSecond = 0;
  /** Its index in the list of that second. */
  index = 0;

  constructor(key: string, windowSeconds: number, expiresAtSecond: number) {
    super(key);
    this.windowSeconds = windowSeconds;
    this.expiresAtSecond = expiresAtSecond;
  }
}

export interface MemoryStoreDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Replaces the default limits by smaller ones. */
  readonly maxCounters?: number;
  /**
   * Runs a task after the requests of this turn have arrived: replaces the next turn of the event loop where a test
   * advances the time.
   */
  readonly soon?: (task: () => void) => void;
}

export class MemoryStore implements CounterStore {
  readonly #clock;
  readonly #log;
  readonly #counterLimit;
  readonly #soon;
  readonly #counters = new TextTable<Counter>();
  #characters = 0;
  /** Counters by the second in which they expire, to find expired ones without a scan. */
  readonly #byExpiry = new Map<number, Counter[]>();
  /** The last reading of the monotonic clock: one for all requests of a tick. */
  #nowSecond;
  /**
   * The expiry of a counter made now with a window of 0: rounded up, since no counter may expire before its window, in
   * whatever fraction of a second of the wall clock it started.
   */
  #firstSecond;
  #droppedUpToSecond;
  /** The time on both clocks, read once for all requests of a tick. */
  #moment: Moment = { wallMs: 0, monotonicMs: 0 };
  #waiting: CountRequest[] = [];
  #scheduled = false;
  #closed = false;

  constructor(deps: MemoryStoreDeps) {
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#counterLimit = deps.maxCounters ?? maxCounters;
    this.#soon = deps.soon ?? setImmediate;
    this.#nowSecond = this.#readSecond();
    this.#firstSecond = this.#nowSecond + 1;
    this.#droppedUpToSecond = this.#nowSecond;
  }

  #readSecond(): number {
    return Math.floor(this.#clock.monotonicMs() / 1000);
  }

  /** The counter, for tests; undefined if it does not exist. */
  read(key: string): number | bigint | undefined {
    this.#nowSecond = this.#readSecond();
    return this.#find(toMapKey(key))?.value;
  }

  count(request: CountRequest): void {
    this.#waiting.push(request);
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#soon(() => this.#execute());
  }

  #execute(): void {
    this.#scheduled = false;
    const requests = this.#waiting;
    this.#waiting = [];
    const nowMs = this.#clock.monotonicMs();
    this.#moment = { wallMs: this.#clock.wallMs(), monotonicMs: nowMs };
    this.#nowSecond = Math.floor(nowMs / 1000);
    this.#firstSecond = Math.ceil(nowMs / 1000);
    this.#dropExpired();
    for (const request of requests) {
      const error = this.#findReasonToLeave(request, nowMs) ?? this.#apply(request);
      try {
        request.settle(error);
      } catch (thrown) {
        this.#log.error(`a decision failed when its hits were counted: ${errorText(thrown)}`);
      }
    }
  }

  #findReasonToLeave(request: CountRequest, nowMs: number): AppError | undefined {
    if (this.#closed) return storeError('the worker is stopping');
    if (request.cancelled)
      return storeError('the caller disconnected before its hits were counted');
    if (request.deadlineMs > nowMs) return undefined;
    return storeError('the deadline passed before the hits were counted');
  }

  #apply(request: CountRequest): AppError | undefined {
    const { hits, mode } = request;
    const suppressed = needsReading(request)
      ? findSuppressed(hits, (hit) => hit.hits > this.#readRoom(hit))
      : undefined;
    let failure: AppError | undefined;
    for (let index = 0; index < hits.length; index++) {
      const hit = hits[index] as Hit;
      const isStill = mode === 'peek' || suppressed?.[index] === true;
      const error = this.#countHit(hit, isStill);
      failure ??= error;
    }
    return failure;
  }

  #find(mapKey: string): Counter | undefined {
    const counter = this.#counters.get(mapKey);
    if (counter === undefined || counter.expiresAtSecond > this.#nowSecond) return counter;
    this.#drop(counter);
    return undefined;
  }

  #readRoom(hit: Hit): number {
    const counter = this.#find(hit.mapKey);
    if (hit.limiter !== undefined) return this.#openLimiter(counter, hit.limiter).room;
    return hit.limit - Number(counter?.value ?? 0);
  }

  #countHit(hit: Hit, isStill: boolean): AppError | undefined {
    if (hit.limiter !== undefined) return this.#countLimited(hit, hit.limiter, isStill);
    return hit.refund ? this.#refund(hit) : this.#add(hit, isStill ? 0 : toAmount(hit));
  }

  #openLimiter(counter: Counter | undefined, { window }: LimiterHit): LimiterCounter {
    return openLimiterCounter(window, readStored(window, counter?.limiter, this.#moment));
  }

  #countLimited(hit: Hit, limiter: LimiterHit, isStill: boolean): AppError | undefined {
    const found = this.#find(hit.mapKey);
    const limited = this.#openLimiter(found, limiter);
    settleLimiterHit(limited, hit, limiter, isStill && !hit.refund ? 0 : hit.hits);
    const reading = limited.save();
    if (reading === undefined) {
      if (found !== undefined) this.#drop(found);
      return undefined;
    }
    const { stored, ttlMs } = storeReading(limiter.window, reading, this.#moment);
    const expiresAtSecond = this.#firstSecond + Math.ceil(ttlMs / 1000);
    const counter = found ?? this.#create(hit, expiresAtSecond);
    if (counter === undefined) return this.#noRoom();
    counter.limiter = stored;
    this.#expireAt(counter, expiresAtSecond);
    return undefined;
  }

  #add(hit: Hit, amount: number | bigint): AppError | undefined {
    const counter =
      this.#find(hit.mapKey) ?? this.#create(hit, this.#firstSecond + hit.windowSeconds);
    if (counter === undefined) return this.#noRoom();
    if (hit.windowSeconds > counter.windowSeconds) {
      counter.windowSeconds = hit.windowSeconds;
      this.#expireAt(counter, this.#firstSecond + hit.windowSeconds);
    }
    const sum = plus(counter.value, amount);
    if (sum !== undefined) counter.value = sum;
    hit.after = sum === undefined ? overflowed : Number(sum);
    return undefined;
  }

  #noRoom(): AppError {
    return storeError(`there are ${this.#counters.size} already, the most that this process keeps`);
  }

  #refund(hit: Hit): undefined {
    const counter = this.#find(hit.mapKey);
    if (counter === undefined) {
      hit.after = 0;
      return;
    }
    const rest = plus(counter.value, -toAmount(hit));
    counter.value = rest === undefined || rest < 0 ? 0 : rest;
    hit.after = Number(counter.value);
  }

  /** Creates a counter for a key without one. */
  #create({ mapKey: joinedKey, windowSeconds }: Hit, expiresAtSecond: number): Counter | undefined {
    const key = owned(joinedKey);
    if (this.#counters.size >= this.#counterLimit) return undefined;
    if (this.#characters + key.length > maxCharacters) return undefined;
    const counter = new Counter(key, windowSeconds, expiresAtSecond);
    this.#counters.add(counter);
    this.#characters += key.length;
    this.#list(counter, expiresAtSecond);
    return counter;
  }

  /**
   * A later expiry is only noted: the counter is found at the earlier second, and listed again then. An expiry one
   * second earlier, as rounding makes of the same moment, is only noted as well: the counter is found a second late.
   */
  #expireAt(counter: Counter, second: number): void {
    counter.expiresAtSecond = second;
    if (second >= counter.listedAtSecond - 1) return;
    this.#unlist(counter);
    this.#list(counter, second);
  }

  #list(counter: Counter, second: number): void {
    counter.listedAtSecond =
      second - this.#nowSecond > 2 * farSeconds ? second - (second % farSeconds) : second;
    const listed = this.#byExpiry.get(counter.listedAtSecond);
    if (listed === undefined) {
      this.#byExpiry.set(counter.listedAtSecond, [counter]);
      counter.index = 0;
    } else counter.index = listed.push(counter) - 1;
  }

  /** Moves the last counter of the list to its position. */
  #unlist({ listedAtSecond, index }: Counter): void {
    const listed = this.#byExpiry.get(listedAtSecond);
    const last = listed?.pop();
    if (listed === undefined || last === undefined) return;
    if (index < listed.length) {
      listed[index] = last;
      last.index = index;
    }
    if (listed.length === 0) this.#byExpiry.delete(listedAtSecond);
  }

  #drop(counter: Counter): void {
    this.#unlist(counter);
    this.#counters.delete(counter);
    this.#characters -= counter.key.length;
  }

  #dropExpired(): void {
    if (this.#droppedUpToSecond === this.#nowSecond) return;
    let budget = maxDropsPerTick;
    for (const second of this.#readDueSeconds()) {
      let counter = this.#byExpiry.get(second)?.at(-1);
      while (counter !== undefined) {
        if (budget-- === 0) return;
        if (counter.expiresAtSecond <= this.#nowSecond) {
          this.#drop(counter);
        } else {
          this.#unlist(counter);
          this.#list(counter, counter.expiresAtSecond);
        }
        counter = this.#byExpiry.get(second)?.at(-1);
      }
      this.#droppedUpToSecond = second;
    }
    this.#droppedUpToSecond = this.#nowSecond;
  }

  /**
   * The seconds up to now in which counters expire, in ascending order. After a long pause, as between two requests of
   * a rehearsal, most seconds have none.
   */
  #readDueSeconds(): readonly number[] {
    const passed = this.#nowSecond - this.#droppedUpToSecond;
    if (passed <= this.#byExpiry.size) {
      return Array.from({ length: passed }, (_, index) => this.#droppedUpToSecond + 1 + index);
    }
    return [...this.#byExpiry.keys()]
      .filter((second) => second <= this.#nowSecond)
      .sort((a, b) => a - b);
  }

  connect(): Promise<void> {
    return Promise.resolve();
  }

  state(): CounterStoreState {
    return { healthy: true, detail: `${this.#counters.size} counters in this process` };
  }

  close(): Promise<void> {
    // Requests that came earlier are executed first.
    if (this.#scheduled) this.#execute();
    this.#closed = true;
    return Promise.resolve();
  }
}

function storeError(text: string): AppError {
  return new AppError('store', `in-process counters: ${text}`);
}

function toAmount(hit: Hit): number | bigint {
  return hit.exactHits ?? hit.hits;
}

/** The exact sum, as a number where possible; undefined when it would exceed the bound. */
function plus(value: number | bigint, amount: number | bigint): number | bigint | undefined {
  if (typeof value === 'number' && typeof amount === 'number') {
    const sum = value + amount;
    if (Number.isSafeInteger(sum)) return sum;
  }
  const sum = BigInt(value) + BigInt(amount);
  if (sum >= counterBound) return undefined;
  return Number.isSafeInteger(Number(sum)) ? Number(sum) : sum;
}
