// The counter store over memcached: reads the counters of decisions that arrive together, answers them,
// and adds the hits in the background (behaviour: memory-cache-counting). An unreachable node fails no
// decision: its counters count as 0, unless KVSTORE_FAILURE_MODE gives other answers.
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import type { Outages } from '../failure/outages.ts';
import { type CounterStore, type CountRequest, type Hit, overflowed } from '../store.ts';
import { addHits, type CounterValue, takeBackHits } from './counter-value.ts';
import { findBadKey, toSentKey } from './key-check.ts';
import type { Counters, MemcachedLane } from './memcached-lane.ts';
import type { MemcachedMetrics } from './memcached-metrics.ts';
import { MemcachedNodes, type MemcachedNodesOptions } from './memcached-nodes.ts';
import type { ResolveSrv } from './srv-record.ts';

/** Limit of unanswered requests; further ones fail at once, which is better than a late answer. */
export const maxOpen = 65_536;
/** How late a deadline may be noticed. One timer for all requests, running only while some are open. */
const sweepMs = 25;
const noNodeIntervalMs = 30_000;

export interface MemcachedStoreDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: MemcachedMetrics;
  readonly resolveSrv: ResolveSrv;
  /** Gets a breaker for each node. */
  readonly outages: Outages;
}

export interface MemcachedStoreOptions extends MemcachedNodesOptions {
  /** MEMSTORE_LONG_KEYS. */
  readonly longKeys: 'fail' | 'hash';
}

export interface MemcachedStore extends CounterStore {
  /** Resolves when every answered hit is in its counter or dropped; for tests that read counters. */
  settled(): Promise<void>;
}

/** A request whose hits are not all decided. */
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
  /** Undefined when there is no node. */
  readonly lane: MemcachedLane | undefined;
  isDecided: boolean;
}

/**
 * Requests never have the mode `add-unless-over`: counters are read before they are changed, by many
 * workers at once, so that mode makes no sense here (behaviour: over-limit-stops-counting).
 */
export function createMemcachedStore(
  options: MemcachedStoreOptions,
  deps: MemcachedStoreDeps,
): MemcachedStore {
  const { clock, log, metrics } = deps;
  const hashesKeys = options.longKeys === 'hash';
  const nodes = new MemcachedNodes(options, { ...deps, onIdle: checkSettled });
  const noNode = createRepeatedLog({
    clock,
    intervalMs: noNodeIntervalMs,
    write: (text) => log.error(text),
  });
  let arrived: CountRequest[] = [];
  let flushScheduled = false;
  /**
   * Replaced whenever it is empty: V8 rebuilds the table of a Map whose entries
   * come and go, and each old table would keep its entries alive until the next full collection.
   */
  let opens = new Set<Open>();
  let cancelSweep: (() => void) | undefined;
  let isDraining = false;
  let closing: Promise<void> | undefined;
  let waiters: (() => void)[] = [];
  return { count, connect: (signal) => nodes.start(signal), state, close, settled };

  function count(request: CountRequest): void {
    const refusal = findRefusal(request);
    if (refusal !== undefined) {
      setImmediate(() => settle(request, refusal));
      return;
    }
    arrived.push(request);
    if (flushScheduled) return;
    flushScheduled = true;
    setImmediate(flush);
  }

  function findRefusal(request: CountRequest): AppError | undefined {
    if (isDraining) return storeError('the worker is stopping');
    if (arrived.length + opens.size >= maxOpen) {
      return new AppError('overloaded', `memory cache: ${maxOpen} requests are waiting already`);
    }
    return hashesKeys ? undefined : findBadKey(request);
  }

  function flush(): void {
    flushScheduled = false;
    const requests = arrived;
    arrived = [];
    const now = clock.monotonicMs();
    const readings = new Map<MemcachedLane | undefined, Turn[]>();
    for (const request of requests) {
      const reason = findReasonToLeave(request, now);
      if (reason !== undefined) settle(request, reason);
      else arrange(request, readings);
    }
    for (const [lane, turns] of readings) startReading(lane, turns);
    if (opens.size > 0) cancelSweep ??= scheduleSweep();
    checkSettled();
  }

  function findReasonToLeave(request: CountRequest, now: number): AppError | undefined {
    if (request.cancelled) return storeError('the caller left before its counters were read');
    if (request.deadlineMs > now) return undefined;
    return storeError('the deadline passed before the counters were read');
  }

  function arrange(request: CountRequest, readings: Map<MemcachedLane | undefined, Turn[]>): void {
    const open: Open = {
      request,
      turns: [],
      undecided: request.hits.length,
      found: 0,
      readFailed: false,
      failure: undefined,
    };
    opens.add(open);
    for (const hit of request.hits) {
      // A key that cannot be sent must not be read either.
      const key = hashesKeys ? toSentKey(hit) : hit.key.toWellFormed();
      const lane = nodes.laneOf(key);
      const turn = { open, hit, key, lane, isDecided: false };
      open.turns.push(turn);
      const turns = readings.get(lane);
      if (turns === undefined) readings.set(lane, [turn]);
      else turns.push(turn);
    }
  }

  function startReading(lane: MemcachedLane | undefined, turns: readonly Turn[]): void {
    if (lane === undefined) {
      noNode.report('memory cache: no node is known, so nothing is counted');
      for (const turn of turns) decide(turn, undefined);
      return;
    }
    const keys = [...new Set(turns.map(({ key }) => key))];
    lane.read(keys, (counters) => {
      for (const turn of turns) decide(turn, counters);
      // After the answers, so that they do not wait for it.
      lane.flush();
    });
  }

  /** Decides turns in order of arrival, for each key. `counters`: undefined when they could not be read. */
  function decide(turn: Turn, counters: Counters | undefined): void {
    const { open, hit, key, lane } = turn;
    if (turn.isDecided) return;
    let value: CounterValue;
    if (counters === undefined) {
      open.readFailed = true;
      if (options.failureMode !== 'error') {
        open.failure ??= storeError(
          lane === undefined ? 'no node is known' : 'a node did not answer',
        );
        finish(turn);
        return;
      }
    } else {
      if (counters.has(key)) open.found++;
      value = lane?.project(key, counters.get(key));
    }
    const amount = open.request.mode === 'look' && !hit.refund ? 0 : toAmount(hit);
    const after = applyHit(turn, value, amount);
    // A caller that left got no answer, so its hits need not count.
    const isCounted = after !== undefined && !open.request.cancelled;
    if (isCounted && !(hit.refund && amount === 0)) {
      lane?.change(hit.refund ? 'refund' : 'add', key, amount, hit.windowSeconds);
    }
    finish(turn);
  }

  /** Sets the hit's `after`; undefined when a counter cannot hold it: the hits are over their limit. */
  function applyHit(
    { hit }: Turn,
    value: CounterValue,
    amount: number | bigint,
  ): number | bigint | undefined {
    const after = hit.refund ? (takeBackHits(value, amount) ?? 0) : addHits(value, amount);
    hit.after = after === undefined ? overflowed : Number(after);
    return after;
  }

  function finish(turn: Turn): void {
    const { open } = turn;
    turn.isDecided = true;
    if (--open.undecided > 0) return;
    opens.delete(open);
    if (opens.size === 0) opens = new Set();
    metrics.keysRequested.add(open.turns.length);
    metrics.keysFound.add(open.found);
    (open.readFailed ? metrics.multigetError : metrics.multigetSuccess).add(1);
    settle(open.request, open.failure);
    checkSettled();
  }

  function settle(request: CountRequest, error: AppError | undefined): void {
    try {
      request.settle(error);
    } catch (thrown) {
      log.error(`a decision failed when its hits were counted: ${errorText(thrown)}`);
    }
  }

  function scheduleSweep(): () => void {
    // After a pause of this process answers may be unread: handle them first.
    return clock.after(sweepMs, () => setImmediate(sweep));
  }

  /** A deadline may pass before a node counts as unreachable: the decision is then made without it. */
  function sweep(): void {
    cancelSweep = undefined;
    const now = clock.monotonicMs();
    for (const open of opens) {
      if (open.request.deadlineMs > now) continue;
      for (const turn of open.turns) decide(turn, undefined);
      for (const { lane } of open.turns) lane?.flush();
    }
    if (opens.size > 0) cancelSweep = scheduleSweep();
  }

  function state() {
    return { healthy: true, detail: nodes.describe() };
  }

  function isSettled(): boolean {
    return arrived.length === 0 && opens.size === 0 && nodes.isIdle;
  }

  function checkSettled(): void {
    if (waiters.length === 0 || !isSettled()) return;
    const resolved = waiters;
    waiters = [];
    for (const resolve of resolved) resolve();
  }

  function settled(): Promise<void> {
    return new Promise((resolve) => {
      waiters.push(resolve);
      checkSettled();
    });
  }

  function close(graceMs: number): Promise<void> {
    isDraining = true;
    closing ??= new Promise((resolve) => {
      let isEnded = false;
      const end = () => {
        if (isEnded) return;
        isEnded = true;
        cancelGrace();
        endNow();
        resolve();
      };
      const cancelGrace = clock.after(graceMs, end);
      void settled().then(end);
    });
    return closing;
  }

  function endNow(): void {
    cancelSweep?.();
    const error = storeError('the worker stopped before an answer came');
    for (const request of arrived) settle(request, error);
    arrived = [];
    for (const { request, turns } of opens) {
      for (const turn of turns) turn.isDecided = true;
      settle(request, error);
    }
    opens.clear();
    const lost = nodes.close();
    if (lost > 0) {
      log.warning(`memory cache: the hits of ${lost} counters were not added before the stop`);
    }
  }
}

function storeError(text: string): AppError {
  return new AppError('store', `memory cache: ${text}`);
}

function toAmount(hit: Hit): number | bigint {
  return hit.exactHits ?? hit.hits;
}
