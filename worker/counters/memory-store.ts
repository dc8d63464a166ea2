// Counts in this process alone: exact, bounded and expiring. For trials and single workers; several
// processes count separately. Requests are executed one by one.
import type { Clock } from '../../shared/clock.ts';
import { type LimiterCounter, openLimiterCounter } from '../../shared/counting/limiter.ts';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { owned } from '../../shared/owned-text.ts';
import { TextEntry, TextTable } from '../../shared/text-table.ts';
import { type KeptLimiter, keepReading, type Moment, readKept } from './kept-limiter.ts';
import {
  type CounterStore,
  type CountRequest,
  findSuppressed,
  type Hit,
  type LimiterHit,
  needsReading,
  overflowed,
  takeHit,
  toMapKey,
} from './store.ts';

/** Limits of live counters, and of characters in the keys that are kept of them. Beyond either,
 * requests that need a new counter fail: dropping a live one would lift a limit. */
export const maxCounters = 1_000_000;
export const maxCharacters = 268_435_456;
/** Expired counters dropped per tick, so that a window's end does not block the process. */
const maxDropsPerTick = 4_000;
/** Counters that expire later than in twice that time are listed for so many seconds together, and again when these
 * begin: limits of a year would make a list of each of its seconds. */
const farSeconds = 1024;
/** A counter stays below it, as the key-value store's do. */
const counterBound = 2n ** 63n;

class Counter extends TextEntry<Counter> {
  /** A bigint only above 2^53. */
  value: number | bigint = 0;
  /** Instead of `value`, where the limit is no fixed window. */
  limiter: KeptLimiter | undefined = undefined;
  /** The longest of those that its hits had: limits of several units may share a counter. */
  windowSeconds: number;
  expiresAtSecond: number;
  /** Its second in `byExpiry`: then or earlier, or a second later. */
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
  /** Smaller limits than the default. */
  readonly maxCounters?: number;
  /** Runs a task once the requests of now are there: in place of the next turn of the event loop, where time is
   * turned by hand. */
  readonly soon?: (task: () => void) => void;
}

export interface MemoryStore extends CounterStore {
  /** The counter, for tests; undefined when there is none. */
  read(key: string): number | bigint | undefined;
}

export function createMemoryStore(deps: MemoryStoreDeps): MemoryStore {
  const { clock, log } = deps;
  const counterLimit = deps.maxCounters ?? maxCounters;
  const soon = deps.soon ?? setImmediate;
  const counters = new TextTable<Counter>();
  let characters = 0;
  /** By the second in which they expire, to find them without a scan. */
  const byExpiry = new Map<number, Counter[]>();
  /** Last reading of the monotonic clock: one for all requests of a tick. */
  let nowSecond = readSecond();
  /** The expiry of a counter made now with a window of 0: rounded up, since no counter may expire before
   * its window, wherever within a second of the wall clock it started. */
  let firstSecond = nowSecond + 1;
  let droppedUpToSecond = nowSecond;
  /** The time on both clocks, read once for all requests of a tick. */
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
    return find(toMapKey(key))?.value;
  }

  function count(request: CountRequest): void {
    waiting.push(request);
    if (scheduled) return;
    scheduled = true;
    soon(execute);
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
      const error = findReasonToLeave(request, nowMs) ?? apply(request);
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
    const suppressed = needsReading(request)
      ? findSuppressed(hits, (hit) => hit.hits > readRoom(hit))
      : undefined;
    let failure: AppError | undefined;
    for (let index = 0; index < hits.length; index++) {
      const hit = hits[index] as Hit;
      const isStill = mode === 'look' || suppressed?.[index] === true;
      const error = countHit(hit, isStill);
      failure ??= error;
    }
    return failure;
  }

  function find(mapKey: string): Counter | undefined {
    const counter = counters.get(mapKey);
    if (counter === undefined || counter.expiresAtSecond > nowSecond) return counter;
    drop(counter);
    return undefined;
  }

  function readRoom(hit: Hit): number {
    const counter = find(hit.mapKey);
    if (hit.limiter !== undefined) return openLimiter(counter, hit.limiter).room;
    return hit.limit - Number(counter?.value ?? 0);
  }

  function countHit(hit: Hit, isStill: boolean): AppError | undefined {
    if (hit.limiter !== undefined) return countLimited(hit, hit.limiter, isStill);
    return hit.refund ? takeBack(hit) : add(hit, isStill ? 0 : toAmount(hit));
  }

  function openLimiter(counter: Counter | undefined, { window }: LimiterHit): LimiterCounter {
    return openLimiterCounter(window, readKept(window, counter?.limiter, moment));
  }

  function countLimited(hit: Hit, limiter: LimiterHit, isStill: boolean): AppError | undefined {
    const found = find(hit.mapKey);
    const limited = openLimiter(found, limiter);
    takeHit(limited, hit, limiter, isStill && !hit.refund ? 0 : hit.hits);
    const reading = limited.save();
    if (reading === undefined) {
      if (found !== undefined) drop(found);
      return undefined;
    }
    const { kept, ttlMs } = keepReading(limiter.window, reading, moment);
    const expiresAtSecond = firstSecond + Math.ceil(ttlMs / 1000);
    const counter = found ?? create(hit, expiresAtSecond);
    if (counter === undefined) return noRoom();
    counter.limiter = kept;
    expireAt(counter, expiresAtSecond);
    return undefined;
  }

  function add(hit: Hit, amount: number | bigint): AppError | undefined {
    const counter = find(hit.mapKey) ?? create(hit, firstSecond + hit.windowSeconds);
    if (counter === undefined) return noRoom();
    if (hit.windowSeconds > counter.windowSeconds) {
      counter.windowSeconds = hit.windowSeconds;
      expireAt(counter, firstSecond + hit.windowSeconds);
    }
    const sum = plus(counter.value, amount);
    if (sum !== undefined) counter.value = sum;
    hit.after = sum === undefined ? overflowed : Number(sum);
    return undefined;
  }

  function noRoom(): AppError {
    return storeError(`${counters.size} are live, no room for more`);
  }

  function takeBack(hit: Hit): undefined {
    const counter = find(hit.mapKey);
    if (counter === undefined) {
      hit.after = 0;
      return;
    }
    const rest = plus(counter.value, -toAmount(hit));
    counter.value = rest === undefined || rest < 0 ? 0 : rest;
    hit.after = Number(counter.value);
  }

  /** There is no counter of that key. */
  function create(
    { mapKey: joinedKey, windowSeconds }: Hit,
    expiresAtSecond: number,
  ): Counter | undefined {
    const key = owned(joinedKey);
    if (counters.size >= counterLimit) return undefined;
    if (characters + key.length > maxCharacters) return undefined;
    const counter = new Counter(key, windowSeconds, expiresAtSecond);
    counters.add(counter);
    characters += key.length;
    list(counter, expiresAtSecond);
    return counter;
  }

  /** A later expiry is only noted: the counter is found at the earlier one and listed again then. So is one that is a
   * second earlier, as rounding makes of the same moment: it is found a second late. */
  function expireAt(counter: Counter, second: number): void {
    counter.expiresAtSecond = second;
    if (second >= counter.listedAtSecond - 1) return;
    unlist(counter);
    list(counter, second);
  }

  function list(counter: Counter, second: number): void {
    counter.listedAtSecond =
      second - nowSecond > 2 * farSeconds ? second - (second % farSeconds) : second;
    const listed = byExpiry.get(counter.listedAtSecond);
    if (listed === undefined) {
      byExpiry.set(counter.listedAtSecond, [counter]);
      counter.index = 0;
    } else counter.index = listed.push(counter) - 1;
  }

  /** The last one of the list takes its place. */
  function unlist({ listedAtSecond, index }: Counter): void {
    const listed = byExpiry.get(listedAtSecond);
    const last = listed?.pop();
    if (listed === undefined || last === undefined) return;
    if (index < listed.length) {
      listed[index] = last;
      last.index = index;
    }
    if (listed.length === 0) byExpiry.delete(listedAtSecond);
  }

  function drop(counter: Counter): void {
    unlist(counter);
    counters.delete(counter);
    characters -= counter.key.length;
  }

  function dropExpired(): void {
    if (droppedUpToSecond === nowSecond) return;
    let budget = maxDropsPerTick;
    for (const second of readDueSeconds()) {
      let counter = byExpiry.get(second)?.at(-1);
      while (counter !== undefined) {
        if (budget-- === 0) return;
        if (counter.expiresAtSecond <= nowSecond) {
          drop(counter);
        } else {
          unlist(counter);
          list(counter, counter.expiresAtSecond);
        }
        counter = byExpiry.get(second)?.at(-1);
      }
      droppedUpToSecond = second;
    }
    droppedUpToSecond = nowSecond;
  }

  /** Those up to now in which counters expire, the first one first. After a long pause, as between two requests of a
   * rehearsal, most seconds have none. */
  function readDueSeconds(): readonly number[] {
    const passed = nowSecond - droppedUpToSecond;
    if (passed <= byExpiry.size) {
      return Array.from({ length: passed }, (_, index) => droppedUpToSecond + 1 + index);
    }
    return [...byExpiry.keys()].filter((second) => second <= nowSecond).sort((a, b) => a - b);
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
