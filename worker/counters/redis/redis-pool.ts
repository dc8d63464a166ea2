// The connections to one server, and counting over them: keeps as many lanes open as the pool has slots,
// and one more when all are busy. `open` chooses the server.
import type { Clock } from '../../../shared/clock.ts';
import { type AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import type { BreakerState } from '../failure/breaker.ts';
import { type FailureMode, toPatienceMs } from '../failure/failure-mode.ts';
import type { Outages } from '../failure/outages.ts';
import type { CountRequest } from '../store.ts';
import { createBatching, type EmptyPoolRule } from './batching.ts';
import type { CommandText, Connection, RawReply } from './connection.ts';
import type { ConnectionTotals } from './connection-totals.ts';
import type { KnownExpiries } from './known-expiries.ts';
import { createRedisLane, type Redirect, type RedisLane } from './redis-lane.ts';
import { createScriptSupport, NoScripts } from './script-support.ts';

/** How often a lasting failure is logged. */
const requestFailureIntervalMs = 5_000;
const connectionFailureIntervalMs = 30_000;
/** The pause after a failed trial batch. */
const trialPauseMs = 250;
/** The pause after a failed overflow connection. */
const overflowRetryMs = 500;

export interface PoolOptions {
  /** KVSTORE_POOL_SIZE. */
  readonly size: number;
  /** KVSTORE_POOL_ON_EMPTY_BEHAVIOR and KVSTORE_POOL_ON_EMPTY_WAIT_DURATION. */
  readonly onEmpty: EmptyPoolRule;
  /** KVSTORE_CLOSE_CONNECTION_ON_READONLY_ERROR. */
  readonly closeOnReadonlyError: boolean;
  /** KVSTORE_TIMEOUT: for connecting and for each answer. */
  readonly timeoutMs: number;
  /** The age at which connections are replaced, approximately; undefined: never. */
  readonly maxAgeMs?: number | undefined;
  /** KVSTORE_PIPELINE_WINDOW. */
  readonly pipelineWindowMs: number;
  /** EXPIRATION_JITTER_MAX_SECONDS. */
  readonly jitterMaxSeconds: number;
  readonly failureMode: FailureMode;
}

export interface RedisPoolDeps {
  /** For texts, such as `key-value store 127.0.0.1:6379`. */
  readonly name: string;
  /** The name of the server's setting, for texts. */
  readonly addressSetting: string;
  readonly open: (signal: AbortSignal) => Promise<Connection>;
  readonly knownExpiries: KnownExpiries;
  readonly totals: ConnectionTotals;
  /** In a cluster only. */
  readonly redirect?: Redirect;
  readonly outages: Outages;
  /** A connection ended, or an attempt to open one failed. */
  readonly onTrouble?: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RedisPool {
  /** As CounterStore.count. */
  count(request: CountRequest): void;
  /** One attempt to open the first connection; `trouble` has its failure. */
  tryToOpen(signal: AbortSignal): Promise<void>;
  /** Opens all connections and keeps them open, or keeps trying while the server is unreachable. */
  keepOpen(): void;
  /** `keepOpen`; resolves when there is a connection, or the server counts as unreachable, after
   * `patienceMs` at the latest. */
  start(): Promise<void>;
  /** Sends commands beside the batches, after waiting for a connection if necessary. `done` is called once,
   * never from inside. */
  sendCommands(commands: readonly CommandText[], done: (replies: RawReply[]) => void): void;
  /** Number of open connections. */
  readonly active: number;
  /** For the debug page. */
  readonly trouble: string | undefined;
  /** Refuses new requests; resolves when no request or command is pending, after `graceMs` at the latest. */
  drain(graceMs: number): Promise<void>;
  /** The server is no longer used: its breaker is removed. */
  forget(): void;
  /** Ends all connections and attempts. */
  close(): void;
}

export function createRedisPool(options: PoolOptions, deps: RedisPoolDeps): RedisPool {
  const { name, clock, log, totals } = deps;
  const scripts = createScriptSupport(name, deps.addressSetting, log);
  const connectionFailures = createRepeatedLog({
    clock,
    intervalMs: connectionFailureIntervalMs,
    write: (text) =>
      log.error(
        `${text}; trying again until it answers, decisions follow KVSTORE_FAILURE_MODE=${options.failureMode}`,
      ),
  });
  let active = 0;
  let lastFailure: string | undefined;
  let closed = false;
  let overflowFailedMs = Number.NEGATIVE_INFINITY;
  /** The attempt under way to open the overflow lane. */
  let overflowAttempt: Promise<void> | undefined;
  const lanes = Array.from({ length: options.size }, () => createLane(true));
  const overflow = createLane(false);
  const [firstLane] = lanes;
  /** Each sends its commands, or fails them when called with an error. */
  let queuedSends: ((error: Error | undefined) => void)[] = [];
  let openSends = 0;
  let tellSent: (() => void) | undefined;
  const patienceMs = toPatienceMs(options.failureMode, options.timeoutMs);
  const breaker = deps.outages.addServer(name, breakerChanged);
  let isKept = false;
  let cancelTrialPause: (() => void) | undefined;
  /** Ends the wait of `start`. */
  let tellStarted = () => {};
  const requestFailures = createRepeatedLog({
    clock,
    intervalMs: requestFailureIntervalMs,
    write: (text) => log.error(`a decision failed: ${text}`),
  });
  const batching = createBatching({
    name,
    batches: {
      name,
      knownExpiries: deps.knownExpiries,
      scripts,
      clock,
      jitterMaxSeconds: options.jitterMaxSeconds,
    },
    lanes,
    overflow,
    openOverflow,
    closeOverflow,
    breaker,
    clock,
    log,
    onRequestFailure,
    timeoutMs: options.timeoutMs,
    patienceMs,
    onEmptyPool: options.onEmpty,
    pipelineWindowMs: options.pipelineWindowMs,
  });

  return {
    count: batching.count,
    tryToOpen,
    keepOpen,
    start,
    sendCommands,
    get active() {
      return active;
    },
    get trouble() {
      return scripts.describe() ?? (lastFailure && `last failure: ${lastFailure}`);
    },
    drain,
    forget: breaker.remove,
    close,
  };

  /** In the other modes decisions do not fail, and the failure policy logs them. */
  function onRequestFailure(error: AppError): void {
    const isSaid = error instanceof NoScripts;
    if (options.failureMode === 'error' && !isSaid) requestFailures.report(error.message);
  }

  function createLane(stays: boolean): RedisLane {
    return createRedisLane({
      clock,
      open: deps.open,
      stays,
      timeoutMs: options.timeoutMs,
      maxAgeMs: options.maxAgeMs,
      redirect: deps.redirect,
      closeOnReadonlyError: options.closeOnReadonlyError,
      onOpen: connectionOpened,
      onEnd: connectionEnded,
      onFailure: (reason) => {
        attemptFailed(reason);
        if (active === 0) connectionFailures.report(`${name}: ${reason}`);
      },
    });
  }

  function connectionOpened(): void {
    active++;
    const outage = active === 1 ? connectionFailures.recover() : undefined;
    if (outage !== undefined) {
      const { seconds, times } = outage;
      log.notice(`${name}: answers again after ${seconds.toFixed(1)} s (${times} failures)`);
    }
    totals.opened();
    endQueuedSends(undefined);
    tellStarted();
    breaker.halfOpen();
    // During the start there is nothing to try it with.
    if (!isKept) breaker.close();
    batching.lanesChanged();
  }

  function breakerChanged(state: BreakerState, before: BreakerState): void {
    if (closed) return;
    if (state === 'open') {
      goAway(before === 'half-open' ? trialPauseMs : 0);
    } else if (state === 'closed' && isKept) {
      keepOpen();
    }
    batching.lanesChanged();
  }

  /** From now on only one lane tries to connect, one attempt at a time. */
  function goAway(pauseMs: number): void {
    const { refusal, reason } = breaker;
    for (const lane of lanes) lane.halt(reason);
    closeOverflow();
    endQueuedSends(refusal);
    tellStarted();
    if (!isKept) return;
    if (pauseMs === 0) firstLane?.keepOpen();
    else cancelTrialPause = clock.after(pauseMs, () => firstLane?.keepOpen());
  }

  function connectionEnded(reason: string, byUs: boolean): void {
    active--;
    if (!closed) {
      lastFailure = reason;
      if (active === 0) connectionFailures.report(`${name}: ${reason}`);
    }
    totals.ended(byUs);
    if (closed) return;
    if (active === 0 && breaker.state === 'half-open') breaker.open(reason);
    deps.onTrouble?.();
  }

  function attemptFailed(reason: string): void {
    lastFailure = reason;
    if (active === 0) breaker.open(reason);
    deps.onTrouble?.();
  }

  function sendCommands(
    commands: readonly CommandText[],
    done: (replies: RawReply[]) => void,
  ): void {
    openSends++;
    trySend(commands, (replies) => {
      openSends--;
      if (openSends === 0) tellSent?.();
      done(replies);
    });
  }

  function trySend(commands: readonly CommandText[], done: (replies: RawReply[]) => void): void {
    if (lanes.some((lane) => lane.sendCommands(commands, done))) return;
    const fail = (error: Error) => setImmediate(() => done(commands.map(() => error)));
    const end = (error: Error | undefined) => {
      if (error !== undefined) fail(error);
      else trySend(commands, done);
    };
    const refusal = closed ? new Error('the connection was closed') : breaker.refusal;
    if (refusal !== undefined) fail(refusal);
    else queuedSends.push(end);
  }

  function endQueuedSends(error: Error | undefined): void {
    const ending = queuedSends;
    queuedSends = [];
    for (const end of ending) end(error);
  }

  async function drain(graceMs: number): Promise<void> {
    await Promise.all([batching.drain(graceMs), drainSends(graceMs)]);
  }

  function drainSends(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancelGrace = clock.after(graceMs, resolve);
      tellSent = () => {
        cancelGrace();
        resolve();
      };
      if (openSends === 0) tellSent();
    });
  }

  function openOverflow(): void {
    if (overflow.ready || overflowAttempt !== undefined || closed) return;
    if (clock.monotonicMs() - overflowFailedMs < overflowRetryMs) return;
    const attempt = overflow.tryToOpen(new AbortController().signal);
    overflowAttempt = attempt;
    const end = (error?: unknown) => {
      // Given up, which says nothing about the server.
      if (overflowAttempt !== attempt) return;
      overflowAttempt = undefined;
      if (error === undefined) return;
      overflowFailedMs = clock.monotonicMs();
      attemptFailed(errorText(error));
    };
    attempt.then(() => end(), end);
  }

  function closeOverflow(): void {
    overflowAttempt = undefined;
    overflow.halt('closed');
  }

  async function tryToOpen(signal: AbortSignal): Promise<void> {
    try {
      await firstLane?.tryToOpen(signal);
    } catch (error) {
      if (!signal.aborted && !closed) attemptFailed(errorText(error));
      throw error;
    }
  }

  function keepOpen(): void {
    isKept = true;
    if (breaker.state === 'closed') for (const lane of lanes) lane.keepOpen();
    else firstLane?.keepOpen();
  }

  function start(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.after(patienceMs, () => {
        breaker.open(`no answer to the attempt to connect in ${patienceMs} ms`);
      });
      tellStarted = () => {
        cancel();
        resolve();
      };
      keepOpen();
    });
  }

  function close(): void {
    closed = true;
    cancelTrialPause?.();
    tellStarted();
    closeOverflow();
    for (const lane of lanes) lane.close();
    endQueuedSends(new Error('the connection was closed'));
  }
}
