// Counts in this process alone: exact, bounded and expiring. For trials and single workers; several
// processes count separately. Requests are executed one by one.
import type { Clock } from '../../shared/clock.ts';
import { type LimiterCounter, openLimiterCounter } from '../../shared/counting/limiter.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { findUncountable, needsReading } from './batch.ts';
import { type KeptLimiter, keepReading, type Moment, readKept } from './kept-limiter.ts';
import { takeHit } from './limiter-hit.ts';
import type { CounterStore, CountRequest, Hit, LimiterWindow } from './store.ts';

/** Limits of live counters, and of characters in their keys, which requests can make long. Beyond either,
 * requests that need a new counter fail: dropping a live one would lift a limit. */
const maxCounters = 1_000_000;
const maxCharacters = 268_435_456;
/** Expired counters dropped per tick, so that a window's end does not block the process. */
const maxDropsPerTick = 4_000;
/** A counter that would pass 2^63-1 refuses the hits, as the key-value store's do. */
const counterBound = 2n ** 63n;

interface Counter {
  /** A bigint only above 2^53. */
  value: number | bigint;
  /** Instead of `value`, where the limit is no fixed window. */
  limiter: KeptLimiter | undefined;
  expiresAtSecond: number;
  /** Its second in `keysByExpiry`: then or earlier. */
  listedAtSecond: number;
}

export interface MemoryStoreDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** Smaller limits than the default. */
  readonly maxCounters?: number;
}

export interface MemoryStore extends CounterStore {
  /** The counter; undefined when there is none. For tests. */
  read(key: string): number | bigint | undefined;
}

export function createMemoryStore(deps: MemoryStoreDeps): MemoryStore {
  const { clock, log } = deps;
  const counterLimit = deps.maxCounters ?? maxCounters;
  const counters = new Map<string, Counter>();
  let characters = 0;
  /** Keys by the second in which their counters expire, to find them without a scan. */
  const keysByExpiry = new Map<number, string[]>();
  /** Last reading of the monotonic clock: one for all requests of a tick. */
  let nowSecond = readSecond();
  /** The expiry of a counter made now with a window of 0: rounded up, since no counter may expire before
   * its window, wherever within a second of the wall clock it started. */
  let firstSecond = nowSecond + 1;
  let droppedUpToSecond = nowSecond;
  /** The same for all requests of a tick. */
  let moment: Moment = { wallMs: 0, monotonicMs: 0 };
  let waiting: CountRequest[] = [];
  let scheduled = false;
  let closed = false;
  return { count, connect, state, close, read };

  function readSecond(): number {
    return Math.floor(clock.monotonicMs() / 1000);
  }

  function read(key: string): number | bigint | undefined {
    nowSecond = readSecond();
    return find(key)?.value;
  }

  function count(request: CountRequest): void {
    waiting.push(request);
    if (scheduled) return;
    scheduled = true;
    setImmediate(execute);
  }

  function execute(): void {
    scheduled = false;
    const requests = waiting;
    waiting = [];
    const nowMs = clock.monotonicMs();
    moment = { wallMs: Math.floor(clock.wallMs()), monotonicMs: nowMs };
    nowSecond = Math.floor(nowMs / 1000);
    firstSecond = Math.ceil(nowMs / 1000);
    dropExpired();
    for (const request of requests) {
      const error = findReasonToLeave(request, nowMs) ?? findUncountable(request) ?? apply(request);
      try {
        request.settle(error);
      } catch (thrown) {
        log.error(`a decision failed when its hits were counted: ${errorText(thrown)}`);
      }
    }
  }

  function findReasonToLeave(request: CountRequest, nowMs: number): AppError | undefined {
    if (closed) return storeError('the worker is stopping');
    if (request.cancelled) return storeError('the caller left before its hits were counted');
    if (request.deadlineMs > nowMs) return undefined;
    return storeError('the deadline passed before the hits were counted');
  }

  function apply(request: CountRequest): AppError | undefined {
    const { hits, mode } = request;
    let overs: boolean[] | undefined;
    if (needsReading(request)) {
      overs = hits.map((hit) => !hit.refund && hit.hits > readRoom(hit));
      if (!overs.includes(true)) overs = undefined;
    }
    let failure: AppError | undefined;
    for (let index = 0; index < hits.length; index++) {
      const hit = hits[index] as Hit;
      const isStill = mode === 'look' || overs?.[index] === false;
      const error = countHit(hit, isStill);
      failure ??= error;
    }
    return failure;
  }

  function find(key: string): Counter | undefined {
    const counter = counters.get(key);
    if (counter !== undefined && counter.expiresAtSecond <= nowSecond) return undefined;
    return counter;
  }

  function readRoom(hit: Hit): number {
    if (hit.limiter !== undefined) return openLimiter(hit, hit.limiter).room;
    return hit.limit - Number(find(hit.key)?.value ?? 0);
  }

  function countHit(hit: Hit, isStill: boolean): AppError | undefined {
    if (hit.limiter !== undefined) return countLimited(hit, hit.limiter, isStill);
    return hit.refund ? takeBack(hit) : add(hit, isStill ? 0 : toAmount(hit));
  }

  function openLimiter(hit: Hit, limiter: LimiterWindow): LimiterCounter {
    return openLimiterCounter(limiter, readKept(limiter, find(hit.key)?.limiter, moment));
  }

  function countLimited(hit: Hit, limiter: LimiterWindow, isStill: boolean): AppError | undefined {
    const limited = openLimiter(hit, limiter);
    takeHit(limited, hit, isStill && !hit.refund ? 0 : hit.hits);
    const reading = limited.save();
    if (reading === undefined) {
      drop(hit.key);
      return undefined;
    }
    const counter = find(hit.key) ?? create(hit);
    if (counter === undefined) return noRoom();
    const { kept, ttlMs } = keepReading(limiter, reading, moment);
    counter.limiter = kept;
    counter.expiresAtSecond = firstSecond + Math.ceil(ttlMs / 1000);
    return undefined;
  }

  function add(hit: Hit, amount: number | bigint): AppError | undefined {
    const counter = find(hit.key) ?? create(hit);
    if (counter === undefined) return noRoom();
    const sum = plus(counter.value, amount);
    if (sum === undefined) return storeError('increment or decrement would overflow');
    counter.value = sum;
    hit.after = Number(sum);
    return undefined;
  }

  function noRoom(): AppError {
    return storeError(`${counters.size} are live, no room for more`);
  }

  function takeBack(hit: Hit): undefined {
    const counter = find(hit.key);
    if (counter === undefined) {
      hit.after = 0;
      return;
    }
    const rest = plus(counter.value, -toAmount(hit));
    counter.value = rest === undefined || rest < 0 ? 0 : rest;
    hit.after = Number(counter.value);
  }

  function create(hit: Hit): Counter | undefined {
    drop(hit.key);
    if (counters.size >= counterLimit) return undefined;
    if (characters + hit.key.length > maxCharacters) return undefined;
    const expiresAtSecond = firstSecond + hit.windowSeconds;
    const counter: Counter = {
      value: 0,
      limiter: undefined,
      expiresAtSecond,
      listedAtSecond: expiresAtSecond,
    };
    counters.set(hit.key, counter);
    characters += hit.key.length;
    list(hit.key, expiresAtSecond);
    return counter;
  }

  function list(key: string, second: number): void {
    const keys = keysByExpiry.get(second);
    if (keys === undefined) keysByExpiry.set(second, [key]);
    else keys.push(key);
  }

  function drop(key: string): void {
    if (counters.delete(key)) characters -= key.length;
  }

  function dropExpired(): void {
    let budget = maxDropsPerTick;
    while (droppedUpToSecond < nowSecond && keysByExpiry.size > 0) {
      const keys = keysByExpiry.get(droppedUpToSecond + 1);
      for (; keys !== undefined && keys.length > 0; budget--) {
        if (budget === 0) return;
        const key = keys.pop() ?? '';
        dropOrList(key, droppedUpToSecond + 1);
      }
      keysByExpiry.delete(droppedUpToSecond + 1);
      droppedUpToSecond++;
    }
    if (keysByExpiry.size === 0) droppedUpToSecond = nowSecond;
  }

  /** Keys still to check of those listed for the second. */
  function dropOrList(key: string, second: number): void {
    const counter = counters.get(key);
    // The key may have a newer counter, which is listed separately.
    if (counter === undefined || counter.listedAtSecond !== second) return;
    if (counter.expiresAtSecond <= nowSecond) {
      drop(key);
    } else {
      counter.listedAtSecond = counter.expiresAtSecond;
      list(key, counter.listedAtSecond);
    }
  }

  function connect(): Promise<void> {
    return Promise.resolve();
  }

  function state() {
    return { healthy: true, detail: `${counters.size} counters in this process` };
  }

  function close(): Promise<void> {
    // Earlier requests are executed first.
    if (scheduled) execute();
    closed = true;
    return Promise.resolve();
  }
}

function storeError(text: string): AppError {
  return new AppError('store', `in-process counters: ${text}`);
}

function toAmount(hit: Hit): number | bigint {
  return hit.exactHits ?? hit.hits;
}

/** The exact sum, as a number where it is one; undefined when a counter cannot hold it. */
function plus(value: number | bigint, amount: number | bigint): number | bigint | undefined {
  if (typeof value === 'number' && typeof amount === 'number') {
    const sum = value + amount;
    if (Number.isSafeInteger(sum)) return sum;
  }
  const sum = BigInt(value) + BigInt(amount);
  if (sum >= counterBound) return undefined;
  return Number.isSafeInteger(Number(sum)) ? Number(sum) : sum;
}
