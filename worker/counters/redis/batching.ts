// Gathers requests into batches, sends each batch over the next free lane, and settles every request once and by its
// deadline. batch.ts plans the content of a batch, redis-lane.ts carries it.
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { Breaker } from '../failure/breaker.ts';
import type { CountRequest } from '../store.ts';
import { Batch, type Settling } from './batch.ts';
import type { OpenRequest, OperationDeps } from './operations.ts';
import { createPipelineWindow, type PipelineWindow } from './pipeline-window.ts';
import type { BatchOwner, RedisLane } from './redis-lane.ts';

/**
 * A batch of this many operations accepts no further requests: its size is bounded, and the next one can use another
 * lane.
 */
const maxOperations = 512;
/** Limit of requests that wait to be sent; further ones fail at once, which is better than a late answer. */
export const maxWaiting = 65_536;
/** A batch is sent without delay when this many requests wait. */
const manyRequests = 16;
/**
 * Batches that may always be in flight: two, so that one slow reply does not delay everything; more would only make
 * batches smaller.
 */
const hotLanes = 2;
/**
 * A further batch beyond those is sent this long after the last one: the store is then distant, or a connection is
 * stuck.
 */
const furtherLaneMs = 5;
/** How late a passed deadline may be detected. One timer for all requests, which only runs while some are open. */
const sweepMs = 25;
/**
 * How long requests wait for the outcome of a trial batch: usually the server has recovered, and none of them fails.
 */
const trialMs = 100;

/** The treatment of requests that find no free lane (behaviour: pool-on-empty). All of them wait for `waitMs` first. */
export interface EmptyPoolRule {
  /** `create`: the overflow lane is opened; `error`: the requests fail; `wait`: they continue to wait. */
  readonly behavior: 'create' | 'error' | 'wait';
  readonly waitMs: number;
}

export interface BatchingDeps {
  /** The name of the store in texts, credentials masked, such as `key-value store 127.0.0.1:6379`. */
  readonly name: string;
  /** Shared by all batches. */
  readonly operations: OperationDeps;
  readonly lanes: readonly RedisLane[];
  /** A lane beyond `lanes`, connected only while it is needed. */
  readonly overflow: RedisLane;
  /** Starts opening the overflow lane, unless it is open or being opened. */
  openOverflow(): void;
  /** Closes the overflow lane. */
  closeOverflow(): void;
  /** Decides whether the server is asked. Opened here or by the pool when the server does not answer. */
  readonly breaker: Breaker;
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each request that fails because of the store. */
  readonly onRequestFailure: (error: AppError) => void;
  /** After this long without any answer the breaker opens. */
  readonly patienceMs: number;
  readonly onEmptyPool: EmptyPoolRule;
  /** How long a batch waits for more requests while none is in flight; 0: a batch has the requests of one tick. */
  readonly pipelineWindowMs: number;
}

export class Batching implements BatchOwner, Settling {
  readonly #deps: BatchingDeps;
  readonly #breaker;
  readonly #clock;
  /** Undefined if a batch has the requests of one tick. */
  readonly #pipelineWindow: PipelineWindow | undefined;
  readonly #silence: Silence;
  /** Includes the overflow lane. */
  readonly #allLanes: readonly RedisLane[];
  /** The requests that wait to be sent, in order of arrival. */
  #waiting: OpenRequest[] = [];
  #lastArrivalMs = Number.NEGATIVE_INFINITY;
  #lastSentMs = Number.NEGATIVE_INFINITY;
  /** The next flush: none, at the end of the tick, or after the pipeline window. */
  #flushing: 'none' | 'scheduled' | 'delayed' = 'none';
  #cancelSweep: (() => void) | undefined;
  #draining: Promise<void> | undefined;
  /** Ends the wait of `drain`. */
  #notifyIdle = () => {};

  constructor(deps: BatchingDeps) {
    const { pipelineWindowMs, clock } = deps;
    this.#deps = deps;
    this.#breaker = deps.breaker;
    this.#clock = clock;
    this.#pipelineWindow =
      pipelineWindowMs > 0 ? createPipelineWindow(pipelineWindowMs, clock) : undefined;
    this.#silence = new Silence(deps.patienceMs);
    this.#allLanes = [...deps.lanes, deps.overflow];
  }

  /** As CounterStore.count. */
  count(request: CountRequest): void {
    const refusal = this.#findRefusal();
    // Requests of one tick arrived at the same time.
    if (this.#flushing === 'none') this.#lastArrivalMs = this.#clock.monotonicMs();
    // A fraction would take an object of its own.
    const arrivedMs = Math.floor(this.#lastArrivalMs);
    const open = { request, arrivedMs, failure: undefined, isSettled: false };
    if (refusal !== undefined) {
      this.#settleLater(open, refusal);
      return;
    }
    if (this.#cancelSweep === undefined) {
      this.#silence.resume(arrivedMs);
      this.#startSweeping();
    }
    this.#waiting.push(open);
    if (this.#flushing === 'none') this.#scheduleBatch();
  }

  /** A method because a closure in `count` would cost each of its calls an object. */
  #settleLater(open: OpenRequest, error: AppError): void {
    setImmediate(() => this.#settle(open, error));
  }

  #scheduleBatch(): void {
    if (this.#pipelineWindow === undefined) {
      this.#scheduleFlush();
    } else {
      this.#flushing = 'scheduled';
      setImmediate((pass) => this.#delayFlush(pass), this.#pipelineWindow);
    }
  }

  #findRefusal(): AppError | undefined {
    if (this.#draining !== undefined) return this.#toError('the worker is stopping');
    if (this.#waiting.length < maxWaiting) return undefined;
    const { name } = this.#deps;
    return new AppError('overloaded', `${name}: ${maxWaiting} requests are waiting already`);
  }

  #scheduleFlush(): void {
    this.#flushing = 'scheduled';
    setImmediate(() => this.#flush());
  }

  /**
   * Called at the end of the tick of the first request. Delays only a batch that could be sent while none is in flight:
   * otherwise the next batch gathers anyway, and sleeping would delay answers.
   */
  #delayFlush(pass: PipelineWindow): void {
    const canLeave = this.#breaker.refusal === undefined && this.#findFreeLane() !== undefined;
    if (canLeave && this.#countInFlight() === 0 && this.#waiting.length < manyRequests) {
      this.#flushing = 'delayed';
      pass(this.#lastArrivalMs, () => this.#flush());
    } else {
      this.#flush();
    }
  }

  #flush(): void {
    this.#flushing = 'none';
    const { refusal } = this.#breaker;
    if (refusal === undefined) {
      this.#sendWaiting();
      this.#closeIdleOverflow();
    } else {
      this.#refuseWaiting(refusal);
    }
  }

  /** While half-open, one batch is sent; later requests wait for its answer for a short time. */
  #refuseWaiting(refusal: AppError): void {
    if (this.#breaker.state === 'half-open') {
      if (this.#countInFlight() === 0) this.#sendWaiting();
      if (this.#clock.monotonicMs() - this.#lastSentMs < trialMs) return;
    }
    for (const open of this.#waiting.splice(0)) this.fail(open, refusal);
    this.#notifyIfIdle();
  }

  #sendWaiting(): void {
    while (this.#waiting.length > 0) {
      const nowMs = this.#clock.monotonicMs();
      const isSoon = nowMs - this.#lastSentMs < furtherLaneMs;
      if (isSoon && this.#countInFlight() >= hotLanes) return;
      const { overflow } = this.#deps;
      const lane = this.#findFreeLane() ?? (overflow.isFree ? overflow : undefined);
      if (lane === undefined) return;
      const batch = this.#fillBatch(nowMs);
      if (batch.requests.length === 0) continue;
      this.#lastSentMs = nowMs;
      lane.carry(batch, this);
    }
  }

  #fillBatch(nowMs: number): Batch {
    const batch = new Batch(this.#deps.operations, this);
    let count = 0;
    for (const open of this.#waiting) {
      if (batch.size >= maxOperations) break;
      count++;
      if (!this.settleIfLate(open, nowMs)) batch.add(open);
    }
    this.#waiting = this.#waiting.slice(count);
    return batch;
  }

  /** The first free lane, so that always the same few connections are busy. Not the overflow lane. */
  #findFreeLane(): RedisLane | undefined {
    return this.#deps.lanes.find(({ isFree }) => isFree);
  }

  #closeIdleOverflow(): void {
    const { overflow, closeOverflow } = this.#deps;
    if (!overflow.isFree) return;
    if (this.#waiting.length === 0 || this.#findFreeLane() !== undefined) closeOverflow();
  }

  /** Call it when a lane has become free, or the breaker has changed. */
  lanesChanged(): void {
    if (this.#waiting.length === 0) this.#closeIdleOverflow();
    else if (this.#flushing === 'none') this.#scheduleFlush();
  }

  /** The batches in flight. */
  #batches(): Batch[] {
    return this.#allLanes.flatMap(({ batch }) => batch ?? []);
  }

  #countInFlight(): number {
    let count = 0;
    for (const { batch } of this.#allLanes) if (batch !== undefined) count++;
    return count;
  }

  answered(): void {
    this.#silence.end();
    if (this.#breaker.refusal !== undefined) this.#breaker.close();
  }

  finished({ requests }: Batch): void {
    for (const open of requests) {
      if (open.failure === undefined) this.#settle(open, undefined);
      else this.fail(open, open.failure);
    }
    this.lanesChanged();
    this.#notifyIfIdle();
  }

  settleIfLate(open: OpenRequest, nowMs: number): boolean {
    const { cancelled, deadlineMs } = open.request;
    if (cancelled) {
      this.#settle(open, this.#toError('the caller disconnected before its hits were sent'));
    } else if (deadlineMs <= nowMs) {
      this.fail(open, this.#toError('the deadline passed before the hits were sent'));
    }
    return open.isSettled;
  }

  fail(open: OpenRequest, error: AppError): void {
    if (!open.isSettled) this.#deps.onRequestFailure(error);
    this.#settle(open, error);
  }

  #settle(open: OpenRequest, error: AppError | undefined): void {
    if (open.isSettled) return;
    open.isSettled = true;
    try {
      open.request.settle(error);
    } catch (thrown) {
      this.#deps.log.error(`a decision failed when its hits were counted: ${errorText(thrown)}`);
    }
  }

  #toError(text: string): AppError {
    return new AppError('store', `${this.#deps.name}: ${text}`);
  }

  #startSweeping(): void {
    this.#cancelSweep = this.#clock.after(sweepMs, () => this.#sweep());
  }

  #sweep(): void {
    this.#cancelSweep = undefined;
    const nowMs = this.#clock.monotonicMs();
    const isAnswerDue = this.#breaker.state !== 'open' && this.#isAnswerDue();
    if (this.#silence.lasts(isAnswerDue)) this.#openBreaker();
    const isLate = ({ request }: OpenRequest) => request.cancelled || request.deadlineMs <= nowMs;
    for (const open of this.#removeWaiting(isLate)) this.settleIfLate(open, nowMs);
    for (const lane of this.#allLanes) {
      for (const open of lane.batch?.requests ?? []) {
        if (open.request.deadlineMs > nowMs) continue;
        this.fail(open, this.#toError('no answer before the deadline'));
      }
      lane.resetIfSilent(nowMs);
    }
    if (this.#flushing === 'none') this.#flush();
    if (this.#waiting.length > 0) this.#applyEmptyPoolRule(nowMs);
    if (this.#waiting.length > 0 || this.#countInFlight() > 0) this.#startSweeping();
    else this.#silence.pause(nowMs);
    this.#notifyIfIdle();
  }

  /** False when the server has answered everything sent to it. */
  #isAnswerDue(): boolean {
    return this.#countInFlight() > 0
      ? this.#allLanes.some(({ awaitsAnswer }) => awaitsAnswer)
      : this.#flushing !== 'delayed';
  }

  #openBreaker(): void {
    this.#breaker.openOnTimeout(`no answer in ${this.#deps.patienceMs} ms`);
    const { refusal } = this.#breaker;
    if (refusal === undefined) return;
    for (const { requests } of this.#batches())
      for (const open of requests) this.fail(open, refusal);
  }

  /** Removes and returns the waiting requests for which `leaves` is true. */
  #removeWaiting(leaves: (open: OpenRequest) => boolean): OpenRequest[] {
    const leaving = this.#waiting.filter(leaves);
    if (leaving.length > 0) this.#waiting = this.#waiting.filter((open) => !leaves(open));
    return leaving;
  }

  #applyEmptyPoolRule(nowMs: number): void {
    // With an open breaker they fail instead of waiting for a connection.
    if (this.#breaker.refusal !== undefined) return;
    const { behavior, waitMs } = this.#deps.onEmptyPool;
    const isDue = ({ arrivedMs }: OpenRequest) => nowMs - arrivedMs >= waitMs;
    const [first] = this.#waiting;
    if (behavior === 'wait' || this.#findFreeLane() !== undefined) return;
    if (behavior === 'create') {
      if (first !== undefined && isDue(first)) this.#deps.openOverflow();
      return;
    }
    const error = this.#toError(`no connection was free for ${waitMs} ms`);
    for (const open of this.#removeWaiting(isDue)) this.fail(open, error);
  }

  /** Refuses new requests; resolves when none is open, or after `graceMs`, when it fails the open ones. */
  drain(graceMs: number): Promise<void> {
    this.#draining ??= this.#awaitIdle(graceMs);
    this.#notifyIfIdle();
    return this.#draining;
  }

  async #awaitIdle(graceMs: number): Promise<void> {
    const idle = Promise.withResolvers<void>();
    this.#notifyIdle = idle.resolve;
    const cancelGrace = this.#clock.after(graceMs, idle.resolve);
    await idle.promise;
    cancelGrace();
    this.#cancelSweep?.();
    const error = this.#toError('the worker stopped before an answer came');
    const sent = this.#batches().flatMap(({ requests }) => requests);
    for (const open of [...this.#waiting.splice(0), ...sent]) this.#settle(open, error);
  }

  #notifyIfIdle(): void {
    if (this.#draining === undefined || this.#waiting.length > 0) return;
    if (this.#countInFlight() === 0) this.#notifyIdle();
  }
}

/**
 * How long requests have been open without an answer of the server. Counted in sweeps, not by the clock: while this
 * process is stalled, answers may be unread.
 */
class Silence {
  readonly #patienceMs: number;
  #ms = 0;
  /** Whether an answer was received since the last sweep. */
  #isOver = false;
  #pausedMs = Number.NEGATIVE_INFINITY;

  constructor(patienceMs: number) {
    this.#patienceMs = patienceMs;
  }

  /** Call it when an answer was received. */
  end(): void {
    this.#isOver = true;
  }

  /** Call it in each sweep. Returns whether patience is at its end; it then starts again. */
  lasts(isAnswerDue: boolean): boolean {
    this.#ms = isAnswerDue && !this.#isOver ? this.#ms + sweepMs : 0;
    this.#isOver = false;
    if (this.#ms < this.#patienceMs) return false;
    this.#ms = 0;
    return true;
  }

  /** Call it when all requests have ended. */
  pause(nowMs: number): void {
    this.#pausedMs = nowMs;
  }

  /**
   * Call it for the first request after a pause. A short pause does not end the silence: when all requests have failed,
   * their callers retry at once.
   */
  resume(nowMs: number): void {
    if (nowMs - this.#pausedMs > this.#patienceMs) this.#ms = 0;
  }
}
