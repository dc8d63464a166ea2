// One batch: plans the operations for the hits of many requests, and sends them in rounds until all are answered.
// batching.ts decides when and where a batch is sent; operations.ts has the commands.
import type { AppError } from '../../../shared/errors.ts';
import { LimiterCounter } from '../limiter.ts';
import { type CountRequest, findSuppressed, type Hit, needsReading } from '../store.ts';
import type { CommandText, RawReply } from './connection.ts';
import {
  Increment,
  LimiterCall,
  type OpenRequest,
  type Operation,
  type OperationDeps,
  Read,
  Refund,
} from './operations.ts';

/** Larger numbers of hits are never summed with others, so that an overflow affects no other request. */
const maxSummedHits = 2 ** 31;
const none: readonly never[] = [];
/** Counters are below this. */
const counterBound = 2 ** 63;

/** Settles requests before all their hits are sent. */
export interface Settling {
  /** Settles the request if it must no longer be sent, and returns whether it did. */
  settleIfLate(open: OpenRequest, nowMs: number): boolean;
  fail(open: OpenRequest, error: AppError): void;
}

/** What to send after a reply. */
export interface Round {
  /** Commands whose replies `receive` gets; empty when everything is answered. */
  readonly commands: readonly CommandText[];
  /** EXPIRE commands to send beside the batch, which does not wait for them: `confirmExpire` is called for each that sets a lifetime. */
  readonly expires: readonly Increment[];
}

/** The counters that were read, by `mapKey`. */
type Counters = Map<string, Read['counter'] | LimiterCall['counter']>;

/**
 * The requests of one batch, in order of arrival, and their operations. Hits on one key share one increment, but
 * refunds and large numbers of hits have their own operations, and no later hit joins an increment before these
 * (behaviour: as-if-one-by-one). If requests depend on the counters (`needsReading`), the first round reads these, and
 * the second counts as if the requests came one by one.
 */
export class Batch {
  readonly requests: OpenRequest[] = [];
  readonly #deps: OperationDeps;
  readonly #settling: Settling;
  /** The operations of the next round. */
  #planned: Operation[] = [];
  /** The operations of the round in flight. */
  #sent: readonly Operation[] = [];
  /** The last planned operation of each counter that later hits may join, by `mapKey`. */
  readonly #joinable = new Map<string, Increment | LimiterCall>();
  /** The readings of the first round, by `mapKey`; undefined when none is needed, or after it. */
  #reads: Map<string, Read | LimiterCall> | undefined;

  constructor(deps: OperationDeps, settling: Settling) {
    this.#deps = deps;
    this.#settling = settling;
  }

  /** The number of operations, without readings. */
  get size(): number {
    return this.#planned.length;
  }

  add(open: OpenRequest): void {
    this.requests.push(open);
    this.#plan(open, undefined);
    if (!needsReading(open.request)) return;
    this.#reads ??= new Map();
    for (const { key, mapKey, limiter } of open.request.hits) {
      if (this.#reads.has(mapKey)) continue;
      const read = limiter
        ? new LimiterCall(this.#deps, key, limiter.window)
        : new Read(this.#deps, key);
      this.#reads.set(mapKey, read);
    }
  }

  #plan(open: OpenRequest, counters: Counters | undefined): void {
    const { hits, mode } = open.request;
    const suppressed =
      counters === undefined ? undefined : findSuppressedBy(counters, open.request);
    for (let index = 0; index < hits.length; index++) {
      const hit = hits[index] as Hit;
      const isPeek = suppressed?.[index] === true || (mode === 'peek' && !hit.refund);
      const count = isPeek ? 0 : hit.hits;
      this.#findOperation(hit, count).add(hit, count, open);
      if (counters !== undefined) track(counters, hit, count);
    }
  }

  /** The operation that counts a hit: one that is planned already, or a new one. */
  #findOperation({ key, mapKey, limiter, refund }: Hit, count: number): Operation {
    let operation: Operation;
    if (limiter === undefined && (refund || count > maxSummedHits)) {
      operation = refund ? new Refund(this.#deps, key) : new Increment(this.#deps, key);
      this.#joinable.delete(mapKey);
    } else {
      const planned = this.#joinable.get(mapKey);
      if (planned?.accepts(limiter !== undefined, count)) return planned;
      const joinable =
        limiter === undefined
          ? new Increment(this.#deps, key)
          : new LimiterCall(this.#deps, key, limiter.window);
      this.#joinable.set(mapKey, joinable);
      operation = joinable;
    }
    this.#planned.push(operation);
    return operation;
  }

  /** The commands of the first round, to be sent in one piece. */
  start(): readonly CommandText[] {
    if (this.#reads !== undefined) this.#planned = [...this.#reads.values()];
    return this.#toCommands();
  }

  #toCommands(): readonly CommandText[] {
    if (this.#planned.length === 0) return none;
    const nowMs = this.#deps.clock.monotonicMs();
    const commands: CommandText[] = [];
    for (const operation of this.#planned) {
      commands.push(operation.toCommand(nowMs));
      if (operation.hasExpire && operation instanceof Increment) {
        commands.push(operation.toExpireCommand());
      }
    }
    this.#sent = this.#planned;
    this.#planned = [];
    return commands;
  }

  /** Processes the replies to the commands of a round. */
  receive(replies: readonly RawReply[]): Round {
    let expires: Increment[] | undefined;
    let next = 0;
    for (const operation of this.#sent) {
      const reply = replies[next++];
      const again = operation.receive(reply, operation.hasExpire ? replies[next++] : undefined);
      if (again.length > 0) this.#planned.push(...again);
      if (operation instanceof Increment && operation.lacksExpire) {
        expires ??= [];
        expires.push(operation);
      }
    }
    if (this.#reads !== undefined && this.#planned.length === 0) this.#planAfterReads(this.#reads);
    return { commands: this.#toCommands(), expires: expires ?? none };
  }

  #planAfterReads(reads: ReadonlyMap<string, Read | LimiterCall>): void {
    const counters: Counters = new Map();
    for (const [mapKey, { counter }] of reads) counters.set(mapKey, counter);
    this.#reads = undefined;
    this.#joinable.clear();
    const nowMs = this.#deps.clock.monotonicMs();
    for (const open of this.requests) {
      if (open.isSettled || this.#settling.settleIfLate(open, nowMs)) continue;
      const failure = needsReading(open.request) ? findFailure(open, counters) : undefined;
      if (failure === undefined) this.#plan(open, counters);
      else this.#settling.fail(open, failure);
    }
  }
}

/** Counts a planned hit on the counter that was read. */
function track(counters: Counters, { mapKey, refund }: Hit, count: number): void {
  const counter = counters.get(mapKey);
  if (counter instanceof LimiterCounter) {
    if (refund) counter.giveBack(count);
    else counter.count(count);
  } else if (typeof counter === 'number') {
    const value = refund ? counter - count : counter + count;
    // A sum beyond the bound leaves the counter unchanged.
    if (counter === 0 || value < counterBound) counters.set(mapKey, Math.max(0, value));
  }
}

function findFailure({ request }: OpenRequest, counters: Counters): AppError | undefined {
  for (const { mapKey } of request.hits) {
    const counter = counters.get(mapKey);
    if (counter instanceof Error) return counter;
  }
  return undefined;
}

/** As `findSuppressed`, by the counters that were read; undefined as well for a request that needs no reading. */
function findSuppressedBy(counters: Counters, request: CountRequest): boolean[] | undefined {
  return needsReading(request)
    ? findSuppressed(request.hits, (hit) => isOver(hit, counters))
    : undefined;
}

function isOver({ mapKey, hits, limit }: Hit, counters: Counters): boolean {
  const counter = counters.get(mapKey);
  if (counter instanceof LimiterCounter) return hits > counter.room;
  return typeof counter === 'number' && counter + hits > limit;
}
