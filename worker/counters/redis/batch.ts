// Plans one batch: turns the hits of many requests into operations, and the replies into each hit's
// result. Pure; batching.ts decides when a batch is sent and where.

import {
  LimiterCounter,
  type LimiterReading,
  openLimiterCounter,
} from '../../../shared/counting/limiter.ts';
import { AppError } from '../../../shared/errors.ts';
import { takeHit } from '../limiter-hit.ts';
import { type CountRequest, type Hit, type LimiterWindow, needsReading } from '../store.ts';

/** An operation on one counter. */
export interface Operation {
  /**
   * - `read`: the counter as it is, 0 when there is none; creates nothing.
   * - `add`: adds, creating the counter with its lifetime, also when the amount is 0.
   * - `refund`: subtracts, stopping at 0; a counter that is missing or not above 0 is left alone.
   * - `limit`: takes hits on a limiter's counter, and returns the counter as it was before.
   */
  readonly kind: 'read' | 'add' | 'refund' | 'limit';
  readonly key: string;
  readonly windowSeconds: number;
  /** An integer >= 0; above 2^53 it is rounded and `exactAmount` has the exact number. */
  amount: number;
  exactAmount: bigint | undefined;
  /** How many hits are summed in the amount. */
  hitCount: number;
  /** For `limit` only. */
  readonly takes: LimiterTakes | undefined;
}

/** Hits on a limiter's counter, in their order. */
export interface LimiterTakes {
  readonly limiter: LimiterWindow;
  /** Pairs: hits (negative ones are given back), and how many times in a row they are requested. */
  readonly runs: number[];
}

/** Why an operation has no result. Other operations of the batch are not affected. */
export interface Failure {
  readonly error: AppError;
  /** The amount did not fit, so the counter was left as it was. */
  readonly overflow: boolean;
  /** No answer: the connection was lost. */
  readonly lost: boolean;
}

/** The counter after the operation, a limiter's as it was before it, or why there is none. */
export type Reply = number | LimiterReading | Failure;

export function isFailure(reply: Reply): reply is Failure {
  return typeof reply !== 'number' && 'error' in reply;
}

/** Hits above this are never summed with others, so that an overflow affects no other request. */
const maxSummedHits = 2 ** 31;
/** Sums stay below this, so that they and results computed from them are exact. */
const sumBound = 2 ** 53;
/** Counters are below this. */
const counterBound = 2 ** 63;

/**
 * The requests of one batch, in order of arrival, and their operations: hits on one key share one
 * increment, but refunds and large numbers of hits stand alone, and no later hit joins an increment before
 * them (behaviour: as-if-one-by-one).
 */
export class Batch {
  /** Undefined where the request was settled before the batch was answered. */
  readonly requests: (CountRequest | undefined)[] = [];
  readonly operations: Operation[] = [];
  /** For each request, the index of its first hit in the two lists below. */
  readonly #firstHit: number[] = [];
  /** For each hit: its operation. */
  readonly #operationOf: number[] = [];
  /** For each hit: the sum of its operation up to and including it. */
  readonly #sumSoFar: number[] = [];
  /** By `mapKey`, the operation that later hits may join. */
  readonly #open = new Map<string, number>();
  readonly #counters: Counters | undefined;
  /** By operation, the hits on limiters' counters. */
  #limited: Map<number, LimitedHits> | undefined;

  /**
   * `counters`: the values read before, by which `add-unless-over` is decided; the map is updated as
   * requests are added. Undefined: such requests are planned as `add`.
   */
  constructor(counters: Counters | undefined) {
    this.#counters = counters;
  }

  add(request: CountRequest): void {
    this.requests.push(request);
    this.#firstHit.push(this.#operationOf.length);
    const { hits, mode } = request;
    const counters = this.#counters;
    const suppressed = counters === undefined ? undefined : findSuppressedHits(request, counters);
    for (let index = 0; index < hits.length; index++) {
      const hit = hits[index] as Hit;
      if (hit.limiter !== undefined) {
        const isStill = !hit.refund && (mode === 'look' || suppressed?.[index] === true);
        this.#addLimited(hit, hit.limiter, isStill ? 0 : hit.hits);
      } else if (hit.refund) this.#addAlone(hit, 'refund');
      else if (mode === 'look' || suppressed?.[index]) this.#addSummed(hit, 0);
      else if (hit.hits > maxSummedHits) this.#addAlone(hit, 'add');
      else this.#addSummed(hit, hit.hits);
    }
  }

  #addSummed(hit: Hit, amount: number): void {
    let index = this.#open.get(hit.mapKey);
    let operation = index === undefined ? undefined : this.operations[index];
    if (index === undefined || operation === undefined || operation.amount + amount >= sumBound) {
      index = this.operations.length;
      operation = toOperation('add', hit.key, hit.windowSeconds);
      this.operations.push(operation);
      this.#open.set(hit.mapKey, index);
    }
    operation.amount += amount;
    operation.hitCount++;
    this.#operationOf.push(index);
    this.#sumSoFar.push(operation.amount);
    this.#track(hit.mapKey, amount);
  }

  #addLimited(hit: Hit, limiter: LimiterWindow, hits: number): void {
    let index = this.#open.get(hit.mapKey);
    let limited = index === undefined ? undefined : this.#limited?.get(index);
    if (index === undefined || limited === undefined) {
      index = this.operations.length;
      const runs: number[] = [];
      limited = { limiter, runs, hits: [], isDecided: false };
      this.operations.push(toLimitOperation(hit.key, limiter, runs));
      this.#open.set(hit.mapKey, index);
      this.#limited ??= new Map();
      this.#limited.set(index, limited);
    }
    const { runs } = limited;
    const signed = hit.refund ? -hits : hits;
    const last = runs.length - 2;
    if (last >= 0 && runs[last] === signed) (runs[last + 1] as number)++;
    else runs.push(signed, 1);
    limited.hits.push({ hit, hits, request: this.requests.length - 1 });
    this.#operationOf.push(index);
    this.#sumSoFar.push(0);
    const counter = this.#counters?.get(hit.mapKey);
    if (counter instanceof LimiterCounter) {
      if (hit.refund) counter.giveBack(hits);
      else counter.take(hits);
    }
  }

  #addAlone(hit: Hit, kind: 'add' | 'refund'): void {
    const operation = toOperation(kind, hit.key, hit.windowSeconds);
    operation.amount = hit.hits;
    operation.exactAmount = hit.exactHits;
    operation.hitCount = 1;
    this.#operationOf.push(this.operations.length);
    this.#sumSoFar.push(hit.hits);
    this.operations.push(operation);
    this.#open.delete(hit.mapKey);
    this.#track(hit.mapKey, kind === 'add' ? hit.hits : -hit.hits);
  }

  #track(mapKey: string, change: number): void {
    const value = this.#counters?.get(mapKey);
    // A sum that does not fit leaves the counter unchanged.
    if (typeof value !== 'number' || (value > 0 && value + change >= counterBound)) return;
    this.#counters?.set(mapKey, Math.max(0, value + change));
  }

  /**
   * Increments whose sum would have overflowed the counter were not made. Returns their hits as separate
   * increments to send next, so that those that fit are counted as if the requests had come one by one.
   * Their replies are appended to `replies`.
   */
  splitOverflows(replies: readonly Reply[]): Operation[] {
    const sumBefore = new Map<number, number>();
    for (const [index, reply] of replies.entries()) {
      if (isOverflow(reply) && this.operations[index]?.hitCount !== 1) {
        sumBefore.set(index, 0);
      }
    }
    const split: Operation[] = [];
    for (const [index, request] of this.requests.entries()) {
      const end = this.#firstHit[index + 1] ?? this.#operationOf.length;
      for (let place = this.#firstHit[index] ?? end; place < end; place++) {
        const summed = this.operations[this.#operationOf[place] ?? -1];
        const before = sumBefore.get(this.#operationOf[place] ?? -1);
        if (before === undefined || summed === undefined) continue;
        const sum = this.#sumSoFar[place] ?? 0;
        sumBefore.set(this.#operationOf[place] ?? -1, sum);
        if (request === undefined) continue;
        const operation = toOperation('add', summed.key, summed.windowSeconds);
        operation.amount = sum - before;
        operation.hitCount = 1;
        this.#operationOf[place] = this.operations.length;
        this.#sumSoFar[place] = operation.amount;
        this.operations.push(operation);
        split.push(operation);
      }
    }
    return split;
  }

  /** The requests that are not settled yet; answers for them are ignored from now on. */
  takeOpen(): CountRequest[] {
    const open = this.requests.filter((request) => request !== undefined);
    this.requests.fill(undefined);
    return open;
  }

  /**
   * Sets `after` of each counted hit of the request at `index` from the replies to all operations. Returns
   * the first failure, if any: it fails exactly the requests with a hit in the failed operation.
   */
  complete(index: number, replies: readonly Reply[]): AppError | undefined {
    let place = this.#firstHit[index] ?? 0;
    const hits = this.requests[index]?.hits ?? [];
    let failure: AppError | undefined;
    for (let hitIndex = 0; hitIndex < hits.length; hitIndex++) {
      const hit = hits[hitIndex] as Hit;
      const operationIndex = this.#operationOf[place] ?? -1;
      const operation = this.operations[operationIndex];
      const reply = replies[operationIndex];
      if (operation === undefined || reply === undefined) {
        return new AppError('internal', 'the store answered fewer operations than it was sent');
      }
      if (typeof reply !== 'number') {
        if (isFailure(reply)) failure ??= reply.error;
        else this.#decide(operationIndex, reply);
      } else {
        hit.after =
          operation.kind === 'refund'
            ? reply
            : reply - (operation.amount - (this.#sumSoFar[place] ?? 0));
      }
      place++;
    }
    return failure;
  }

  /** Computes what the store has decided about all hits of one operation. */
  #decide(operationIndex: number, reading: LimiterReading): void {
    const limited = this.#limited?.get(operationIndex);
    if (limited === undefined || limited.isDecided) return;
    limited.isDecided = true;
    const counter = openLimiterCounter(limited.limiter, reading);
    for (const { hit, hits, request } of limited.hits) {
      // A request that was settled without an answer is not changed any more.
      if (this.requests[request] !== undefined) takeHit(counter, hit, hits);
      else if (hit.refund) counter.giveBack(hits);
      else counter.take(hits);
    }
  }
}

/** By `mapKey`, as they were read: a number, or a limiter's counter. */
export type Counters = Map<string, number | LimiterCounter>;

interface LimitedHits {
  readonly limiter: LimiterWindow;
  readonly runs: number[];
  /** With the number of hits of each, and the index of its request. */
  readonly hits: { readonly hit: Hit; readonly hits: number; readonly request: number }[];
  isDecided: boolean;
}

/** For each hit, whether it is not counted because another one is over its limit. */
function findSuppressedHits(request: CountRequest, counters: Counters): boolean[] | undefined {
  if (!needsReading(request)) return undefined;
  const isOver = ({ mapKey, refund, hits, limit }: Hit) => {
    const counter = counters.get(mapKey) ?? 0;
    return !refund && (typeof counter === 'number' ? counter + hits > limit : hits > counter.room);
  };
  if (!request.hits.some(isOver)) return undefined;
  return request.hits.map((hit) => !isOver(hit));
}

export function isOverflow(reply: Reply): boolean {
  return typeof reply !== 'number' && isFailure(reply) && reply.overflow;
}

export function toOperation(
  kind: Operation['kind'],
  key: string,
  windowSeconds: number,
): Operation {
  return {
    kind,
    key,
    windowSeconds,
    amount: 0,
    exactAmount: undefined,
    hitCount: 0,
    takes: undefined,
  };
}

/** Without `runs` it only reads. */
export function toLimitOperation(
  key: string,
  limiter: LimiterWindow,
  runs: number[] = [],
): Operation {
  return {
    kind: 'limit',
    key,
    windowSeconds: limiter.windowSeconds,
    amount: 0,
    exactAmount: undefined,
    hitCount: 0,
    takes: { limiter, runs },
  };
}
