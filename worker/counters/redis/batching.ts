// Gathers requests into batches, sends each batch over the next free lane, and settles every request once and by its
// deadline. batch.ts plans the content of a batch.
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { afterPause, sharpenPauses } from '../../fine-pause.ts';
import type { Breaker } from '../failure/breaker.ts';
import { type CountRequest, needsReading } from '../store.ts';
import { Batch, type BatchDeps } from './batch.ts';
import type { CommandText, RawReply } from './connection.ts';

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
/** Grace beyond the timeout before a connection without an answer is dropped. */
const resetGraceMs = 25;

/** Timers have whole milliseconds: in a shorter window the thread is blocked instead. */
const shortestTimerMs = 1;

/** Maintains a connection, and carries one batch at a time over it. */
export interface Lane {
  /** Connected, so that a batch can be written now. */
  readonly ready: boolean;
  /**
   * Writes the commands at once. `done` is called exactly once, never during `send`, with one reply for each command:
   * an Error for each unanswered one when the connection is lost. Nothing is ever sent twice. `onAnswer` is called
   * before `done`, when this server has answered; answers of servers to which it redirected commands may then be
   * missing.
   */
  send(
    commands: readonly CommandText[],
    done: (replies: RawReply[]) => void,
    onAnswer?: () => void,
  ): void;
  /** Drops the connection, whose server does not answer, and reconnects. */
  reset(reason: string): void;
}

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
  readonly batches: BatchDeps;
  readonly lanes: readonly Lane[];
  /** A lane beyond `lanes`, ready only while it is open. */
  readonly overflow: Lane;
  /** Starts opening the overflow lane, unless it is open or being opened. */
  openOverflow(): void;
  /** Closes the overflow lane. */
  closeOverflow(): void;
  /** Decides whether the server is asked. Opened here or in the lanes when the server does not answer. */
  readonly breaker: Breaker;
  readonly clock: Clock;
  readonly log: Log;
  /** Called for each request that fails because of the store. */
  readonly onRequestFailure: (error: AppError) => void;
  /** How long a lane may take to answer a batch before it is reset. */
  readonly timeoutMs: number;
  /** After this long without any answer the breaker opens. */
  readonly patienceMs: number;
  readonly onEmptyPool: EmptyPoolRule;
  /** How long a batch waits for more requests while none is in flight; 0: a batch has the requests of one tick. */
  readonly pipelineWindowMs: number;
}

/** A lane with the batch that it carries, if any. */
interface Slot {
  readonly lane: Lane;
  /** The batch that has the requests; while counters are read first, too. */
  batch: Batch | undefined;
  /** When the last operations of the batch were sent. */
  writtenMs: number;
  /** True when the server has answered; other cluster nodes may still have to. */
  isAnswered: boolean;
}

export class Batching {
  readonly #deps: BatchingDeps;
  readonly #name;
  readonly #breaker;
  readonly #clock;
  readonly #log;
  readonly #timeoutMs;
  readonly #patienceMs;
  readonly #onEmptyPool;
  readonly #pipelineWindow;
  readonly #waiting = new WaitingLine();
  readonly #slots;
  readonly #overflow;
  readonly #allSlots;
  /** The number of slots with a batch. */
  #inFlight = 0;
  #lastArrivalMs = Number.NEGATIVE_INFINITY;
  #lastSentMs = Number.NEGATIVE_INFINITY;
  #flushScheduled = false;
  /** True while requests wait for the pipeline window, not for the store. */
  #isDelayed = false;
  #cancelSweep: (() => void) | undefined;
  /** Whether an answer was received since the last sweep. */
  #heard = false;
  /**
   * How long requests have been open without an answer of the server. Counted in sweeps, not by the clock: while this
   * process is stalled, answers may be unread.
   */
  #silentMs = 0;
  /**
   * Since when no request is open. When all have failed and their callers retry at once, the server counts as silent
   * throughout.
   */
  #idleSinceMs = Number.NEGATIVE_INFINITY;
  #draining: Promise<void> | undefined;
  #drained: (() => void) | undefined;

  constructor(deps: BatchingDeps) {
    this.#deps = deps;
    this.#name = deps.name;
    this.#breaker = deps.breaker;
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#timeoutMs = deps.timeoutMs;
    this.#patienceMs = deps.patienceMs;
    this.#onEmptyPool = deps.onEmptyPool;
    this.#pipelineWindow =
      deps.pipelineWindowMs > 0
        ? createPipelineWindow(deps.pipelineWindowMs, deps.clock)
        : undefined;
    this.#slots = deps.lanes.map(toSlot);
    this.#overflow = toSlot(deps.overflow);
    this.#allSlots = [...this.#slots, this.#overflow];
  }

  /** As CounterStore.count. */
  count(request: CountRequest): void {
    const refusal = this.#findRefusal();
    if (refusal !== undefined) {
      setImmediate(() => this.#settle(request, refusal));
      return;
    }
    // Requests of one tick arrived at the same time.
    if (!this.#flushScheduled) this.#lastArrivalMs = this.#clock.monotonicMs();
    if (
      this.#cancelSweep === undefined &&
      this.#lastArrivalMs - this.#idleSinceMs > this.#patienceMs
    )
      this.#silentMs = 0;
    this.#waiting.push(request, this.#lastArrivalMs);
    this.#startSweeping();
    if (this.#flushScheduled) return;
    if (this.#pipelineWindow === undefined) {
      this.#scheduleFlush();
    } else {
      this.#flushScheduled = true;
      setImmediate((pass) => this.#holdBack(pass), this.#pipelineWindow);
    }
  }

  /**
   * Called at the end of the tick of the first request. Delays only a batch that could be sent while none is in flight:
   * otherwise the next batch gathers anyway, and sleeping would delay answers.
   */
  #holdBack(pass: PipelineWindow): void {
    const canLeave = this.#breaker.refusal === undefined && this.#findFreeSlot() !== undefined;
    this.#isDelayed = canLeave && this.#inFlight === 0 && this.#waiting.size < manyRequests;
    if (this.#isDelayed) pass(this.#lastArrivalMs, () => this.#flush());
    else this.#flush();
  }

  #findRefusal(): AppError | undefined {
    if (this.#draining !== undefined)
      return new AppError('store', `${this.#name}: the worker is stopping`);
    if (this.#waiting.size >= maxWaiting) {
      return new AppError(
        'overloaded',
        `${this.#name}: ${maxWaiting} requests are waiting already`,
      );
    }
    return undefined;
  }

  /** Call it when a lane has become ready, or the breaker has changed. */
  lanesChanged(): void {
    if (this.#waiting.size === 0) this.#closeIdleOverflow();
    else if (!this.#flushScheduled) this.#scheduleFlush();
  }

  #scheduleFlush(): void {
    this.#flushScheduled = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#flushScheduled = false;
    this.#isDelayed = false;
    if (this.#breaker.refusal !== undefined) {
      this.#refuseWaiting(this.#breaker.refusal);
      return;
    }
    this.#sendWaiting();
    this.#closeIdleOverflow();
  }

  /** While half-open, one batch is sent; later requests wait for its answer for a short time. */
  #refuseWaiting(refusal: AppError): void {
    if (this.#breaker.state === 'half-open') {
      if (this.#inFlight === 0) this.#sendWaiting();
      if (this.#clock.monotonicMs() - this.#lastSentMs < trialMs) return;
    }
    for (const request of this.#waiting.takeAll()) this.#fail(request, refusal);
    this.#finishDraining();
  }

  #sendWaiting(): void {
    while (this.#waiting.size > 0) {
      const now = this.#clock.monotonicMs();
      if (this.#inFlight >= hotLanes && now - this.#lastSentMs < furtherLaneMs) return;
      const slot = this.#findFreeSlot() ?? (isFree(this.#overflow) ? this.#overflow : undefined);
      if (slot === undefined) return;
      this.#sendNextBatch(slot, now);
    }
  }

  /** The first free slot, so that always the same few connections are busy. */
  #findFreeSlot(): Slot | undefined {
    return this.#slots.find(isFree);
  }

  #closeIdleOverflow(): void {
    if (!isFree(this.#overflow)) return;
    if (this.#waiting.size === 0 || this.#findFreeSlot() !== undefined) this.#deps.closeOverflow();
  }

  #sendNextBatch(slot: Slot, now: number): void {
    const batch = new Batch(this.#deps.batches, undefined);
    let reads: Batch | undefined;
    while (batch.size < maxOperations) {
      const request = this.#waiting.shift();
      if (request === undefined) break;
      const reason = this.#findReasonToLeave(request, now);
      if (reason !== undefined) {
        this.#settle(request, reason);
        continue;
      }
      batch.add(request);
      if (needsReading(request)) {
        reads ??= new Batch(this.#deps.batches, undefined);
        reads.read(request.hits);
      }
    }
    if (batch.requests.length === 0) return;
    this.#lastSentMs = now;
    slot.batch = batch;
    this.#inFlight++;
    this.#send(slot, reads ?? batch);
  }

  #send(slot: Slot, batch: Batch, commands: readonly CommandText[] = batch.toCommands()): void {
    slot.writtenMs = this.#clock.monotonicMs();
    slot.isAnswered = false;
    slot.lane.send(
      commands,
      (replies) => this.#take(slot, batch, replies),
      () => this.#noteAnswer(slot),
    );
  }

  #noteAnswer(slot: Slot): void {
    slot.isAnswered = true;
    this.#heard = true;
    if (this.#breaker.refusal !== undefined) this.#breaker.close();
  }

  #take(slot: Slot, batch: Batch, replies: RawReply[]): void {
    const { commands, expiries } = batch.take(replies);
    if (expiries !== undefined) {
      slot.lane.send(expiries.commands, (answers) => batch.confirm(expiries, answers));
    }
    if (commands.length > 0) this.#send(slot, batch, commands);
    else if (batch === slot.batch) this.#complete(slot, batch);
    else this.#sendAfterReads(slot, batch);
  }

  /** The reason if an unsent request must no longer be sent. */
  #findReasonToLeave(request: CountRequest, now: number): AppError | undefined {
    if (request.cancelled) {
      return new AppError('store', `${this.#name}: the caller left before its hits were sent`);
    }
    if (request.deadlineMs > now) return undefined;
    const error = new AppError(
      'store',
      `${this.#name}: the deadline passed before the hits were sent`,
    );
    this.#deps.onRequestFailure(error);
    return error;
  }

  /**
   * The first round of a batch with `add-unless-over` has read the counters. Plans the second with them, as if the
   * requests came one by one.
   */
  #sendAfterReads(slot: Slot, reads: Batch): void {
    const now = this.#clock.monotonicMs();
    const second = new Batch(this.#deps.batches, reads.counters());
    for (const request of slot.batch?.requests ?? []) {
      if (request === undefined) continue;
      const reason = this.#findReasonToLeave(request, now);
      const failure = needsReading(request) ? reads.findFailure(request.hits) : undefined;
      if (reason !== undefined) this.#settle(request, reason);
      else if (failure !== undefined) this.#fail(request, failure);
      else second.add(request);
    }
    if (second.requests.length === 0) {
      this.#finish(slot);
    } else {
      slot.batch = second;
      this.#send(slot, second);
    }
  }

  #complete(slot: Slot, batch: Batch): void {
    const { requests } = batch;
    for (let index = 0; index < requests.length; index++) {
      const request = requests[index];
      if (request === undefined) continue;
      const error = batch.complete(index);
      if (error === undefined) this.#settle(request, undefined);
      else this.#fail(request, error);
    }
    this.#finish(slot);
  }

  #finish(slot: Slot): void {
    slot.batch = undefined;
    this.#inFlight--;
    this.lanesChanged();
    this.#finishDraining();
  }

  #fail(request: CountRequest, error: AppError): void {
    this.#deps.onRequestFailure(error);
    this.#settle(request, error);
  }

  #settle(request: CountRequest, error: AppError | undefined): void {
    try {
      request.settle(error);
    } catch (thrown) {
      this.#log.error(`a decision failed when its hits were counted: ${errorText(thrown)}`);
    }
  }

  #startSweeping(): void {
    this.#cancelSweep ??= this.#clock.after(sweepMs, () => this.#sweep());
  }

  #sweep(): void {
    this.#cancelSweep = undefined;
    const now = this.#clock.monotonicMs();
    const isSilent = !this.#heard && this.#breaker.state !== 'open' && this.#isAnswerDue();
    this.#silentMs = isSilent ? this.#silentMs + sweepMs : 0;
    this.#heard = false;
    if (this.#silentMs >= this.#patienceMs) this.#giveUp();
    this.#sweepWaiting(now);
    for (const { lane, batch, writtenMs, isAnswered } of this.#allSlots) {
      if (batch === undefined) continue;
      for (const [index, request] of batch.requests.entries()) {
        if (request === undefined || request.deadlineMs > now) continue;
        batch.requests[index] = undefined;
        this.#fail(request, new AppError('store', `${this.#name}: no answer before the deadline`));
      }
      if (!isAnswered && now >= writtenMs + this.#timeoutMs + resetGraceMs) {
        lane.reset(`no answer in ${this.#timeoutMs} ms`);
      }
    }
    if (!this.#flushScheduled) this.#flush();
    if (this.#waiting.size > 0) this.#applyEmptyPoolRule(now);
    if (this.#waiting.size > 0 || this.#inFlight > 0) this.#startSweeping();
    else this.#idleSinceMs = now;
    this.#finishDraining();
  }

  /** False when this server has answered everything sent to it. */
  #isAnswerDue(): boolean {
    if (this.#inFlight === 0) return !this.#isDelayed;
    return this.#allSlots.some(({ batch, isAnswered }) => batch !== undefined && !isAnswered);
  }

  #giveUp(): void {
    this.#silentMs = 0;
    this.#breaker.openOnTimeout(`no answer in ${this.#patienceMs} ms`);
    const { refusal } = this.#breaker;
    if (refusal === undefined) return;
    for (const request of this.#takeSent()) this.#fail(request, refusal);
  }

  /** The requests of all batches in flight; their answers are ignored from now on. */
  #takeSent(): CountRequest[] {
    return this.#allSlots.flatMap(({ batch }) => batch?.takeOpen() ?? []);
  }

  #sweepWaiting(now: number): void {
    const isLeaving = ({ cancelled, deadlineMs }: CountRequest) => cancelled || deadlineMs <= now;
    for (const request of this.#waiting.takeWhere(isLeaving)) {
      this.#settle(request, this.#findReasonToLeave(request, now));
    }
  }

  #applyEmptyPoolRule(now: number): void {
    // With an open breaker they fail instead of waiting for a connection.
    if (this.#breaker.refusal !== undefined) return;
    const { behavior, waitMs } = this.#onEmptyPool;
    const isDue = now - (this.#waiting.oldestMs ?? now) >= waitMs;
    if (behavior === 'wait' || !isDue || this.#findFreeSlot() !== undefined) return;
    if (behavior === 'create') {
      this.#deps.openOverflow();
      return;
    }
    const error = new AppError('store', `${this.#name}: no connection was free for ${waitMs} ms`);
    for (const request of this.#waiting.takeWhere((_, arrivedMs) => now - arrivedMs >= waitMs)) {
      this.#fail(request, error);
    }
  }

  /** Refuses new requests; resolves when none is open, or after `graceMs`, when it fails the open ones. */
  drain(graceMs: number): Promise<void> {
    this.#draining ??= new Promise((resolve) => {
      const endDrain = () => {
        this.#drained = undefined;
        cancelGrace();
        this.#cancelSweep?.();
        const error = new AppError(
          'store',
          `${this.#name}: the worker stopped before an answer came`,
        );
        for (const request of this.#waiting.takeAll()) this.#settle(request, error);
        for (const request of this.#takeSent()) this.#settle(request, error);
        resolve();
      };
      const cancelGrace = this.#clock.after(graceMs, endDrain);
      this.#drained = endDrain;
    });
    this.#finishDraining();
    return this.#draining;
  }

  #finishDraining(): void {
    if (this.#waiting.size === 0 && this.#inFlight === 0) this.#drained?.();
  }
}

function toSlot(lane: Lane): Slot {
  return { lane, batch: undefined, writtenMs: 0, isAnswered: false };
}

function isFree({ lane, batch }: Slot): boolean {
  return batch === undefined && lane.ready;
}

/**
 * Delays a batch to gather more requests (KVSTORE_PIPELINE_WINDOW), which saves wake-ups and writes: most of a
 * decision's cost below saturation. Calls `leave` when the window that started at `sinceMs` (monotonic clock) has
 * passed.
 */
export type PipelineWindow = (sinceMs: number, leave: () => void) => void;

/**
 * For a window below a millisecond the whole thread sleeps, and wakes once for everything that arrived meanwhile, which
 * is most of the saving. Overlapping windows, as of several stores, are one sleep: the second one has then already
 * passed.
 */
export function createPipelineWindow(windowMs: number, clock: Clock): PipelineWindow {
  if (windowMs >= shortestTimerMs) {
    const wholeMs = Math.floor(windowMs);
    return (_, leave) => void clock.after(wholeMs, leave);
  }
  sharpenPauses();
  return (sinceMs, leave) => afterPause(windowMs - (clock.monotonicMs() - sinceMs), leave);
}

/** The requests that wait to be sent, in order of arrival. */
class WaitingLine {
  #requests: CountRequest[] = [];
  /** Times of arrival: a separate list avoids an object per request. */
  #arrivals: number[] = [];
  /** Index of the first request, so that removing one does not move the others. `takeWhere` closes the gap. */
  #head = 0;

  get size(): number {
    return this.#requests.length - this.#head;
  }

  /** When the first request arrived, on the monotonic clock; undefined when none waits. */
  get oldestMs(): number | undefined {
    return this.#arrivals[this.#head];
  }

  push(request: CountRequest, nowMs: number): void {
    this.#requests.push(request);
    this.#arrivals.push(nowMs);
  }

  /** Removes and returns the first request. */
  shift(): CountRequest | undefined {
    const first = this.#requests[this.#head];
    if (first === undefined) return undefined;
    this.#head++;
    if (this.#head === this.#requests.length) this.#clear();
    return first;
  }

  /** Removes and returns all requests. */
  takeAll(): CountRequest[] {
    const all = this.#requests.slice(this.#head);
    this.#clear();
    return all;
  }

  /** Removes and returns those for which `leaves` is true. */
  takeWhere(leaves: (request: CountRequest, arrivedMs: number) => boolean): CountRequest[] {
    const leaving: CountRequest[] = [];
    // In place: this happens often, and usually removes none.
    let staying = 0;
    for (let index = this.#head; index < this.#requests.length; index++) {
      const request = this.#requests[index] as CountRequest;
      const arrivedMs = this.#arrivals[index] as number;
      if (leaves(request, arrivedMs)) {
        leaving.push(request);
      } else {
        this.#requests[staying] = request;
        this.#arrivals[staying] = arrivedMs;
        staying++;
      }
    }
    this.#requests.length = staying;
    this.#arrivals.length = staying;
    this.#head = 0;
    return leaving;
  }

  #clear(): void {
    this.#requests = [];
    this.#arrivals = [];
    this.#head = 0;
  }
}
