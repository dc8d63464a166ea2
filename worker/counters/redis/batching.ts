// Gathers requests into batches, sends each over the next free lane, and settles every request once and by
// its deadline. batch.ts plans the content of a batch.
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import { afterPause, sharpenPauses } from '../../../shared/fine-pause.ts';
import type { Log } from '../../../shared/log.ts';
import type { Breaker } from '../failure/breaker.ts';
import { type CountRequest, needsReading } from '../store.ts';
import { Batch, type BatchDeps } from './batch.ts';
import type { CommandText, RawReply } from './connection.ts';

/** A batch of this many operations takes no further request: its size is bounded, and the next one can use
 * another lane. */
const maxOperations = 512;
/** Limit of requests that wait to be sent; further ones fail at once, which is better than a late answer. */
export const maxWaiting = 65_536;
/** With this many waiting requests a batch is not held back. */
const manyRequests = 16;
/** Batches in flight that are always allowed: two, so that one slow reply does not delay everything; more
 * only make batches smaller. */
const hotLanes = 2;
/** Beyond those, a further batch is sent this long after the last one: then the store is distant, or a
 * connection is stuck. */
const furtherLaneMs = 5;
/** How late a deadline may be noticed. One timer for all requests, running only while some are open. */
const sweepMs = 25;
/** How long requests wait for the outcome of a trial batch: mostly the server is back, and then none of
 * them fails. */
const trialMs = 100;
/** Grace beyond the timeout before a connection without an answer is dropped. */
const resetGraceMs = 25;

/** Timers have whole milliseconds: shorter windows block the thread. */
const shortestTimerMs = 1;

/** Keeps a connection, and carries one batch at a time over it. */
export interface Lane {
  /** Connected, so that a batch can be written now. */
  readonly ready: boolean;
  /**
   * Writes the commands at once. `done` is called exactly once, never from inside `send`, with one reply for
   * each command, an Error also when the connection is lost. Nothing is ever sent twice. `onAnswer` is called
   * before, when the server has answered; answers of servers to which it redirected commands may then still be
   * missing.
   */
  send(
    commands: readonly CommandText[],
    done: (replies: RawReply[]) => void,
    onAnswer?: () => void,
  ): void;
  /** Drops the connection, which does not answer, and reconnects. */
  reset(reason: string): void;
}

/** How requests are treated that find no free lane (behaviour: pool-on-empty). All wait for `waitMs` first. */
export interface EmptyPoolRule {
  /** `create`: the overflow lane is opened; `error`: they fail; `wait`: they keep waiting. */
  readonly behavior: 'create' | 'error' | 'wait';
  readonly waitMs: number;
}

export interface BatchingDeps {
  /** Names the store in texts, credentials masked, such as `key-value store 127.0.0.1:6379`. */
  readonly name: string;
  /** Shared by its batches. */
  readonly batches: BatchDeps;
  readonly lanes: readonly Lane[];
  /** The lane beyond `lanes`, ready only while it is open. */
  readonly overflow: Lane;
  /** Starts opening the overflow lane, unless it is open or being opened. */
  openOverflow(): void;
  /** Closes the overflow lane. */
  closeOverflow(): void;
  /** Whether the server is asked. Opened here or in the lanes when the server does not answer. */
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
  /** How long a batch waits for more requests while none is in flight; 0: a batch is what arrives in one
   * tick. */
  readonly pipelineWindowMs: number;
}

export interface Batching {
  /** As CounterStore.count. */
  count(request: CountRequest): void;
  /** Call it when a lane has become ready, or the breaker has changed. */
  lanesChanged(): void;
  /** Refuses new requests; resolves when none is open, or after `graceMs`, when it fails the open ones. */
  drain(graceMs: number): Promise<void>;
}

/** A lane with the batch that it carries, if any. */
interface Slot {
  readonly lane: Lane;
  /** While its counters are read first, the batch that has the requests. */
  batch: Batch | undefined;
  /** When the last operations of the batch were sent. */
  writtenMs: number;
  /** The server has answered; other cluster nodes may still have to. */
  isAnswered: boolean;
}

export function createBatching(deps: BatchingDeps): Batching {
  const { name, breaker, clock, log, timeoutMs, patienceMs, onEmptyPool } = deps;
  const pipelineWindow =
    deps.pipelineWindowMs > 0 ? createPipelineWindow(deps.pipelineWindowMs, clock) : undefined;
  const waiting = new WaitingLine();
  const slots = deps.lanes.map(toSlot);
  const overflow = toSlot(deps.overflow);
  const allSlots = [...slots, overflow];
  /** How many slots have a batch. */
  let inFlight = 0;
  let lastArrivalMs = Number.NEGATIVE_INFINITY;
  let lastSentMs = Number.NEGATIVE_INFINITY;
  let flushScheduled = false;
  /** Requests wait for the pipeline window, not for the store. */
  let isDelayed = false;
  let cancelSweep: (() => void) | undefined;
  /** Whether anything was answered since the last sweep. */
  let heard = false;
  /** For how many sweeps requests have been open without any answer of the server. Counted in sweeps, not
   * time: while this process is stalled, answers may be unread. */
  let silentMs = 0;
  /** Where all open requests have failed and their callers ask again at once, silence goes on. */
  let idleSinceMs = Number.NEGATIVE_INFINITY;
  let draining: Promise<void> | undefined;
  let drained: (() => void) | undefined;

  return { count, lanesChanged, drain };

  function count(request: CountRequest): void {
    const refusal = findRefusal();
    if (refusal !== undefined) {
      setImmediate(() => settle(request, refusal));
      return;
    }
    // Requests of one tick arrived at the same time.
    if (!flushScheduled) lastArrivalMs = clock.monotonicMs();
    if (cancelSweep === undefined && lastArrivalMs - idleSinceMs > patienceMs) silentMs = 0;
    waiting.push(request, lastArrivalMs);
    startSweeping();
    if (flushScheduled) return;
    if (pipelineWindow === undefined) {
      scheduleFlush();
    } else {
      flushScheduled = true;
      setImmediate(holdBack, pipelineWindow);
    }
  }

  /**
   * Called at the end of the tick of the first request. While a batch is in flight the next one gathers anyway,
   * and sleeping would delay answers; while nothing can be sent, waiting is useless.
   */
  function holdBack(pass: PipelineWindow): void {
    const canLeave = breaker.refusal === undefined && findFreeSlot() !== undefined;
    isDelayed = canLeave && inFlight === 0 && waiting.size < manyRequests;
    if (isDelayed) pass(lastArrivalMs, flush);
    else flush();
  }

  function findRefusal(): AppError | undefined {
    if (draining !== undefined) return new AppError('store', `${name}: the worker is stopping`);
    if (waiting.size >= maxWaiting) {
      return new AppError('overloaded', `${name}: ${maxWaiting} requests are waiting already`);
    }
    return undefined;
  }

  function lanesChanged(): void {
    if (waiting.size === 0) closeIdleOverflow();
    else if (!flushScheduled) scheduleFlush();
  }

  function scheduleFlush(): void {
    flushScheduled = true;
    setImmediate(flush);
  }

  function flush(): void {
    flushScheduled = false;
    isDelayed = false;
    if (breaker.refusal !== undefined) {
      refuseWaiting(breaker.refusal);
      return;
    }
    sendWaiting();
    closeIdleOverflow();
  }

  /** While half-open, one batch is sent; later requests wait for its answer, but not for long. */
  function refuseWaiting(refusal: AppError): void {
    if (breaker.state === 'half-open') {
      if (inFlight === 0) sendWaiting();
      if (clock.monotonicMs() - lastSentMs < trialMs) return;
    }
    for (const request of waiting.takeAll()) fail(request, refusal);
    finishDraining();
  }

  function sendWaiting(): void {
    while (waiting.size > 0) {
      const now = clock.monotonicMs();
      if (inFlight >= hotLanes && now - lastSentMs < furtherLaneMs) return;
      const slot = findFreeSlot() ?? (isFree(overflow) ? overflow : undefined);
      if (slot === undefined) return;
      sendNextBatch(slot, now);
    }
  }

  /** The first free one, so that the same few connections are busy. */
  function findFreeSlot(): Slot | undefined {
    return slots.find(isFree);
  }

  function closeIdleOverflow(): void {
    if (!isFree(overflow)) return;
    if (waiting.size === 0 || findFreeSlot() !== undefined) deps.closeOverflow();
  }

  function sendNextBatch(slot: Slot, now: number): void {
    const batch = new Batch(deps.batches, undefined);
    let reads: Batch | undefined;
    while (batch.size < maxOperations) {
      const request = waiting.shift();
      if (request === undefined) break;
      const reason = findReasonToLeave(request, now);
      if (reason !== undefined) {
        settle(request, reason);
        continue;
      }
      batch.add(request);
      if (needsReading(request)) {
        reads ??= new Batch(deps.batches, undefined);
        reads.read(request.hits);
      }
    }
    if (batch.requests.length === 0) return;
    lastSentMs = now;
    slot.batch = batch;
    inFlight++;
    send(slot, reads ?? batch);
  }

  function send(
    slot: Slot,
    batch: Batch,
    commands: readonly CommandText[] = batch.toCommands(),
  ): void {
    slot.writtenMs = clock.monotonicMs();
    slot.isAnswered = false;
    slot.lane.send(
      commands,
      (replies) => take(slot, batch, replies),
      () => noteAnswer(slot),
    );
  }

  function noteAnswer(slot: Slot): void {
    slot.isAnswered = true;
    heard = true;
    if (breaker.refusal !== undefined) breaker.close();
  }

  function take(slot: Slot, batch: Batch, replies: RawReply[]): void {
    const { commands, expiries } = batch.take(replies);
    if (expiries !== undefined) {
      slot.lane.send(expiries.commands, (answers) => batch.confirm(expiries, answers));
    }
    if (commands.length > 0) send(slot, batch, commands);
    else if (batch === slot.batch) complete(slot, batch);
    else sendAfterReads(slot, batch);
  }

  /** Why an unsent request must no longer be sent, if so. */
  function findReasonToLeave(request: CountRequest, now: number): AppError | undefined {
    if (request.cancelled) {
      return new AppError('store', `${name}: the caller left before its hits were sent`);
    }
    if (request.deadlineMs > now) return undefined;
    const error = new AppError('store', `${name}: the deadline passed before the hits were sent`);
    deps.onRequestFailure(error);
    return error;
  }

  /** The first round of a batch with `add-unless-over` has read the counters. The second is planned with them as
   * if the requests came one by one. */
  function sendAfterReads(slot: Slot, reads: Batch): void {
    const now = clock.monotonicMs();
    const second = new Batch(deps.batches, reads.counters());
    for (const request of slot.batch?.requests ?? []) {
      if (request === undefined) continue;
      const reason = findReasonToLeave(request, now);
      const failure = needsReading(request) ? reads.findFailure(request.hits) : undefined;
      if (reason !== undefined) settle(request, reason);
      else if (failure !== undefined) fail(request, failure);
      else second.add(request);
    }
    if (second.requests.length === 0) {
      finish(slot);
    } else {
      slot.batch = second;
      send(slot, second);
    }
  }

  function complete(slot: Slot, batch: Batch): void {
    const { requests } = batch;
    for (let index = 0; index < requests.length; index++) {
      const request = requests[index];
      if (request === undefined) continue;
      const error = batch.complete(index);
      if (error === undefined) settle(request, undefined);
      else fail(request, error);
    }
    finish(slot);
  }

  function finish(slot: Slot): void {
    slot.batch = undefined;
    inFlight--;
    lanesChanged();
    finishDraining();
  }

  function fail(request: CountRequest, error: AppError): void {
    deps.onRequestFailure(error);
    settle(request, error);
  }

  function settle(request: CountRequest, error: AppError | undefined): void {
    try {
      request.settle(error);
    } catch (thrown) {
      log.error(`a decision failed when its hits were counted: ${errorText(thrown)}`);
    }
  }

  function startSweeping(): void {
    cancelSweep ??= clock.after(sweepMs, sweep);
  }

  function sweep(): void {
    cancelSweep = undefined;
    const now = clock.monotonicMs();
    const isSilent = !heard && breaker.state !== 'open' && isAnswerDue();
    silentMs = isSilent ? silentMs + sweepMs : 0;
    heard = false;
    if (silentMs >= patienceMs) giveUp();
    sweepWaiting(now);
    for (const { lane, batch, writtenMs, isAnswered } of allSlots) {
      if (batch === undefined) continue;
      for (const [index, request] of batch.requests.entries()) {
        if (request === undefined || request.deadlineMs > now) continue;
        batch.requests[index] = undefined;
        fail(request, new AppError('store', `${name}: no answer before the deadline`));
      }
      if (!isAnswered && now >= writtenMs + timeoutMs + resetGraceMs) {
        lane.reset(`no answer in ${timeoutMs} ms`);
      }
    }
    if (!flushScheduled) flush();
    if (waiting.size > 0) applyEmptyPoolRule(now);
    if (waiting.size > 0 || inFlight > 0) startSweeping();
    else idleSinceMs = now;
    finishDraining();
  }

  /** False when this server has answered everything sent to it. */
  function isAnswerDue(): boolean {
    if (inFlight === 0) return !isDelayed;
    return allSlots.some(({ batch, isAnswered }) => batch !== undefined && !isAnswered);
  }

  function giveUp(): void {
    silentMs = 0;
    breaker.openOnTimeout(`no answer in ${patienceMs} ms`);
    const { refusal } = breaker;
    if (refusal === undefined) return;
    for (const request of takeSent()) fail(request, refusal);
  }

  /** The requests of all batches in flight; their answers are ignored from now on. */
  function takeSent(): CountRequest[] {
    return allSlots.flatMap(({ batch }) => batch?.takeOpen() ?? []);
  }

  function sweepWaiting(now: number): void {
    const isLeaving = ({ cancelled, deadlineMs }: CountRequest) => cancelled || deadlineMs <= now;
    for (const request of waiting.takeWhere(isLeaving)) {
      settle(request, findReasonToLeave(request, now));
    }
  }

  function applyEmptyPoolRule(now: number): void {
    // Then they do not wait for a connection.
    if (breaker.refusal !== undefined) return;
    const { behavior, waitMs } = onEmptyPool;
    const isDue = now - (waiting.oldestMs ?? now) >= waitMs;
    if (behavior === 'wait' || !isDue || findFreeSlot() !== undefined) return;
    if (behavior === 'create') {
      deps.openOverflow();
      return;
    }
    const error = new AppError('store', `${name}: no connection was free for ${waitMs} ms`);
    for (const request of waiting.takeWhere((_, arrivedMs) => now - arrivedMs >= waitMs)) {
      fail(request, error);
    }
  }

  function drain(graceMs: number): Promise<void> {
    draining ??= new Promise((resolve) => {
      const cancelGrace = clock.after(graceMs, () => endDrain());
      drained = endDrain;
      function endDrain() {
        drained = undefined;
        cancelGrace();
        cancelSweep?.();
        const error = new AppError('store', `${name}: the worker stopped before an answer came`);
        for (const request of waiting.takeAll()) settle(request, error);
        for (const request of takeSent()) settle(request, error);
        resolve();
      }
    });
    finishDraining();
    return draining;
  }

  function finishDraining(): void {
    if (waiting.size === 0 && inFlight === 0) drained?.();
  }
}

function toSlot(lane: Lane): Slot {
  return { lane, batch: undefined, writtenMs: 0, isAnswered: false };
}

function isFree({ lane, batch }: Slot): boolean {
  return batch === undefined && lane.ready;
}

/** How long a batch waits for more requests (KVSTORE_PIPELINE_WINDOW), which saves wake-ups and writes: most of a
 * decision's cost below saturation. Calls `leave` when the window that started at `sinceMs` (monotonic clock) has passed. */
export type PipelineWindow = (sinceMs: number, leave: () => void) => void;

/**
 * In a window below a millisecond the whole thread sleeps, and wakes once for everything that arrived
 * meanwhile, which is most of the saving. Overlapping windows, as of several stores, are one sleep:
 * nothing is left of the second one.
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
  /** In a list of its own, to avoid an object per request. */
  #arrivals: number[] = [];
  /** Index of the first one, so that taking one does not move the others. `takeWhere` closes the gap. */
  #head = 0;

  get size(): number {
    return this.#requests.length - this.#head;
  }

  /** When the first one came, on the monotonic clock; undefined when none waits. */
  get oldestMs(): number | undefined {
    return this.#arrivals[this.#head];
  }

  push(request: CountRequest, nowMs: number): void {
    this.#requests.push(request);
    this.#arrivals.push(nowMs);
  }

  /** Removes and returns the first one. */
  shift(): CountRequest | undefined {
    const first = this.#requests[this.#head];
    if (first === undefined) return undefined;
    this.#head++;
    if (this.#head === this.#requests.length) this.#clear();
    return first;
  }

  /** Removes and returns all. */
  takeAll(): CountRequest[] {
    const all = this.#requests.slice(this.#head);
    this.#clear();
    return all;
  }

  /** Removes and returns those for which `leaves` is true. */
  takeWhere(leaves: (request: CountRequest, arrivedMs: number) => boolean): CountRequest[] {
    const leaving: CountRequest[] = [];
    // In place: this happens often, and mostly none leaves.
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
