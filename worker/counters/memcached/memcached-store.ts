// The counter store over memcached: reads the counters of decisions that arrive together, answers them, and adds the
// hits in the background (behaviour: memory-cache-counting). An unreachable node fails no decision: its counters count
// as 0, unless KVSTORE_FAILURE_MODE determines another answer.
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import type { Outages } from '../failure/outages.ts';
import {
  type CounterStore,
  type CounterStoreState,
  type CountRequest,
  type Hit,
  overflowed,
} from '../store.ts';
import { addHits, type CounterValue, refundHits } from './counter-value.ts';
import { findBadKey, toSentKey } from './key-check.ts';
import type { Counters, MemcachedLane } from './memcached-lane.ts';
import type { MemcachedMetrics } from './memcached-metrics.ts';
import { MemcachedNodes, type MemcachedNodesOptions } from './memcached-nodes.ts';
import type { ResolveSrv } from './srv-record.ts';

/** Limit of unanswered requests; further ones fail at once, which is better than a late answer. */
export const maxOpen = 65_536;
/** How late a passed deadline may be detected. One timer for all requests, which only runs while some are open. */
const sweepMs = 25;
const noNodeIntervalMs = 30_000;

export interface MemcachedStoreDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: MemcachedMetrics;
  readonly resolveSrv: ResolveSrv;
  /** A breaker for each node is added to it. */
  readonly outages: Outages;
}

export interface MemcachedStoreOptions extends MemcachedNodesOptions {
  /** MEMSTORE_LONG_KEYS. */
  readonly longKeys: 'fail' | 'hash';
}

/** A request with undecided hits. */
interface Open {
  readonly request: CountRequest;
  readonly turns: Turn[];
  undecided: number;
  found: number;
  readFailed: boolean;
  failure: AppError | undefined;
}

/** One hit on its way to its decision. */
interface Turn {
  readonly open: Open;
  readonly hit: Hit;
  readonly key: string;
  /** Undefined without any node. */
  readonly lane: MemcachedLane | undefined;
  isDecided: boolean;
}

/**
 * Requests never have the mode `add-unless-over`: many workers read counters before they change them, so that mode is
 * pointless here (behaviour: over-limit-stops-counting).
 */
export class MemcachedStore implements CounterStore {
  readonly #options: MemcachedStoreOptions;
  readonly #clock;
  readonly #log;
  readonly #metrics;
  readonly #hashesKeys;
  readonly #nodes;
  readonly #noNode;
  #arrived: CountRequest[] = [];
  #flushScheduled = false;
  /**
   * Replaced whenever it is empty: V8 rebuilds the table of a Map whose entries are added and removed often, and each
   * old table would retain its entries until the next full collection.
   */
  #opens = new Set<Open>();
  #cancelSweep: (() => void) | undefined;
  #isDraining = false;
  #closing: Promise<void> | undefined;
  #waiters: (() => void)[] = [];

  constructor(options: MemcachedStoreOptions, deps: MemcachedStoreDeps) {
    this.#options = options;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#metrics = deps.metrics;
    this.#hashesKeys = options.longKeys === 'hash';
    this.#nodes = new MemcachedNodes(options, { ...deps, onIdle: () => this.#checkSettled() });
    this.#noNode = createRepeatedLog({
      clock: deps.clock,
      intervalMs: noNodeIntervalMs,
      write: (text) => deps.log.error(text),
    });
  }

  count(request: CountRequest): void {
    const refusal = this.#findRefusal(request);
    if (refusal !== undefined) {
      setImmediate(() => this.#settle(request, refusal));
      return;
    }
    this.#arrived.push(request);
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    setImmediate(() => this.#flush());
  }

  #findRefusal(request: CountRequest): AppError | undefined {
    if (this.#isDraining) return storeError('the worker is stopping');
    if (this.#arrived.length + this.#opens.size >= maxOpen) {
      return new AppError('overloaded', `memory cache: ${maxOpen} requests are waiting already`);
    }
    return this.#hashesKeys ? undefined : findBadKey(request);
  }

  #flush(): void {
    this.#flushScheduled = false;
    const requests = this.#arrived;
    this.#arrived = [];
    const now = this.#clock.monotonicMs();
    const readings = new Map<MemcachedLane | undefined, Turn[]>();
    for (const request of requests) {
      const reason = this.#findReasonToLeave(request, now);
      if (reason !== undefined) this.#settle(request, reason);
      else this.#arrange(request, readings);
    }
    for (const [lane, turns] of readings) this.#startReading(lane, turns);
    if (this.#opens.size > 0) this.#cancelSweep ??= this.#scheduleSweep();
    this.#checkSettled();
  }

  #findReasonToLeave(request: CountRequest, now: number): AppError | undefined {
    if (request.cancelled)
      return storeError('the caller disconnected before its counters were read');
    if (request.deadlineMs > now) return undefined;
    return storeError('the deadline passed before the counters were read');
  }

  #arrange(request: CountRequest, readings: Map<MemcachedLane | undefined, Turn[]>): void {
    const open: Open = {
      request,
      turns: [],
      undecided: request.hits.length,
      found: 0,
      readFailed: false,
      failure: undefined,
    };
    this.#opens.add(open);
    for (const hit of request.hits) {
      // A key that cannot be sent must not be read either.
      const key = this.#hashesKeys ? toSentKey(hit) : hit.key.toWellFormed();
      const lane = this.#nodes.laneOf(key);
      const turn = { open, hit, key, lane, isDecided: false };
      open.turns.push(turn);
      const turns = readings.get(lane);
      if (turns === undefined) readings.set(lane, [turn]);
      else turns.push(turn);
    }
  }

  #startReading(lane: MemcachedLane | undefined, turns: readonly Turn[]): void {
    if (lane === undefined) {
      this.#noNode.report('memory cache: no node is known, so nothing is counted');
      for (const turn of turns) this.#decide(turn, undefined);
      return;
    }
    const keys = [...new Set(turns.map(({ key }) => key))];
    lane.read(keys, (counters) => {
      for (const turn of turns) this.#decide(turn, counters);
      // After the answers, so that these are not delayed.
      lane.flush();
    });
  }

  /** Decides turns in order of arrival, for each key. `counters` is undefined when they could not be read. */
  #decide(turn: Turn, counters: Counters | undefined): void {
    const { open, hit, key, lane } = turn;
    if (turn.isDecided) return;
    let value: CounterValue;
    if (counters === undefined) {
      open.readFailed = true;
      if (this.#options.failureMode !== 'error') {
        open.failure ??= storeError(
          lane === undefined ? 'no node is known' : 'a node did not answer',
        );
        this.#finish(turn);
        return;
      }
    } else {
      if (counters.has(key)) open.found++;
      value = lane?.project(key, counters.get(key));
    }
    const amount = open.request.mode === 'peek' && !hit.refund ? 0 : toAmount(hit);
    const after = this.#applyHit(turn, value, amount);
    // A caller that disconnected got no answer, so its hits need not be counted.
    const isCounted = after !== undefined && !open.request.cancelled;
    if (isCounted && !(hit.refund && amount === 0)) {
      lane?.change(hit.refund ? 'refund' : 'add', key, amount, hit.windowSeconds);
    }
    this.#finish(turn);
  }

  /** Sets the hit's `after`; undefined when the counter would exceed its bound: the hits are over their limit. */
  #applyHit(
    { hit }: Turn,
    value: CounterValue,
    amount: number | bigint,
  ): number | bigint | undefined {
    const after = hit.refund ? (refundHits(value, amount) ?? 0) : addHits(value, amount);
    hit.after = after === undefined ? overflowed : Number(after);
    return after;
  }

  #finish(turn: Turn): void {
    const { open } = turn;
    turn.isDecided = true;
    if (--open.undecided > 0) return;
    this.#opens.delete(open);
    if (this.#opens.size === 0) this.#opens = new Set();
    this.#metrics.keysRequested.add(open.turns.length);
    this.#metrics.keysFound.add(open.found);
    (open.readFailed ? this.#metrics.multigetError : this.#metrics.multigetSuccess).add(1);
    this.#settle(open.request, open.failure);
    this.#checkSettled();
  }

  #settle(request: CountRequest, error: AppError | undefined): void {
    try {
      request.settle(error);
    } catch (thrown) {
      this.#log.error(`a decision failed when its hits were counted: ${errorText(thrown)}`);
    }
  }

  #scheduleSweep(): () => void {
    // After a pause of this process answers may have arrived unread: handle them first.
    return this.#clock.after(sweepMs, () => setImmediate(() => this.#sweep()));
  }

  /** A deadline may pass before a node counts as unreachable: the decision is then made without its counters. */
  #sweep(): void {
    this.#cancelSweep = undefined;
    const now = this.#clock.monotonicMs();
    for (const open of this.#opens) {
      if (open.request.deadlineMs > now) continue;
      for (const turn of open.turns) this.#decide(turn, undefined);
      for (const { lane } of open.turns) lane?.flush();
    }
    if (this.#opens.size > 0) this.#cancelSweep = this.#scheduleSweep();
  }

  state(): CounterStoreState {
    return { healthy: true, detail: this.#nodes.describe() };
  }

  #isSettled(): boolean {
    return this.#arrived.length === 0 && this.#opens.size === 0 && this.#nodes.isIdle;
  }

  #checkSettled(): void {
    if (this.#waiters.length === 0 || !this.#isSettled()) return;
    const resolved = this.#waiters;
    this.#waiters = [];
    for (const resolve of resolved) resolve();
  }

  /** Resolves when every answered hit is in its counter or dropped; for tests that read counters. */
  settled(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiters.push(resolve);
      this.#checkSettled();
    });
  }

  close(graceMs: number): Promise<void> {
    this.#isDraining = true;
    this.#closing ??= new Promise((resolve) => {
      let isEnded = false;
      const end = () => {
        if (isEnded) return;
        isEnded = true;
        cancelGrace();
        this.#endNow();
        resolve();
      };
      const cancelGrace = this.#clock.after(graceMs, end);
      void this.settled().then(end);
    });
    return this.#closing;
  }

  #endNow(): void {
    this.#cancelSweep?.();
    const error = storeError('the worker stopped before an answer came');
    for (const request of this.#arrived) this.#settle(request, error);
    this.#arrived = [];
    for (const { request, turns } of this.#opens) {
      for (const turn of turns) turn.isDecided = true;
      this.#settle(request, error);
    }
    this.#opens.clear();
    const lost = this.#nodes.close();
    if (lost > 0) {
      this.#log.warning(
        `memory cache: the hits of ${lost} counters were not added before the stop`,
      );
    }
  }

  connect(signal: AbortSignal): Promise<void> {
    return this.#nodes.start(signal);
  }
}

function storeError(text: string): AppError {
  return new AppError('store', `memory cache: ${text}`);
}

function toAmount(hit: Hit): number | bigint {
  return hit.exactHits ?? hit.hits;
}
