// The connections to one server, and counting over them: maintains as many lanes as the pool has slots, and one more
// when all are busy. `open` chooses the server.
import type { Clock } from '../../../shared/clock.ts';
import { type AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog, type RepeatedLog } from '../../../shared/repeated-log.ts';
import type { BreakerState } from '../failure/breaker.ts';
import { type FailureMode, toPatienceMs } from '../failure/failure-mode.ts';
import type { Outages, ServerBreaker } from '../failure/outages.ts';
import type { KnownExpiries } from '../known-expiries.ts';
import { Batching, type EmptyPoolRule } from './batching.ts';
import type { CommandText, Connection, RawReply } from './connection.ts';
import type { ConnectionTotals } from './connection-totals.ts';
import { type Redirect, RedisLane } from './redis-lane.ts';
import type { DescribeRemedy } from './remedies.ts';
import { createScriptSupport, NoScripts, type ScriptSupport } from './script-support.ts';

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
  readonly describeRemedy: DescribeRemedy;
  /** KVSTORE_TIMEOUT: time limit of connecting and of each answer. */
  readonly timeoutMs: number;
  /** The approximate age at which connections are replaced; undefined for never. */
  readonly maxAgeMs?: number | undefined;
  /** KVSTORE_PIPELINE_WINDOW. */
  readonly pipelineWindowMs: number;
  /** EXPIRATION_JITTER_MAX_SECONDS. */
  readonly jitterMaxSeconds: number;
  readonly failureMode: FailureMode;
}

export interface RedisPoolDeps {
  /** The name in texts, such as `key-value store 127.0.0.1:6379`. */
  readonly name: string;
  /** The name of the server's setting, for messages. */
  readonly addressSetting: string;
  readonly open: (signal: AbortSignal) => Promise<Connection>;
  readonly knownExpiries: KnownExpiries;
  readonly totals: ConnectionTotals;
  /** Only set in a cluster. */
  readonly redirect?: Redirect;
  readonly outages: Outages;
  /** Called when a connection ended, or an attempt to open one failed. */
  readonly onFailure?: () => void;
  readonly clock: Clock;
  readonly log: Log;
}

export interface RedisPool {
  /** Counts over the connections. */
  readonly batching: Pick<Batching, 'count'>;
  /** Makes one attempt to open the first connection; `lastProblem` has its failure. */
  tryToOpen(signal: AbortSignal): Promise<void>;
  /** Opens all connections and maintains them, retrying while the server is unreachable. */
  stayOpen(): void;
  /**
   * As `stayOpen`; resolves when a connection is open, or the server counts as unreachable, after `patienceMs` at the
   * latest.
   */
  start(): Promise<void>;
  /**
   * Sends commands beside the batches, after waiting for a connection if necessary. `done` is called once, never during
   * `sendCommands`.
   */
  sendCommands(commands: readonly CommandText[], done: (replies: RawReply[]) => void): void;
  /** Number of open connections. */
  readonly active: number;
  /** The last failure, for the debug page. */
  readonly lastProblem: string | undefined;
  /** Refuses new requests; resolves when no request or command is pending, after `graceMs` at the latest. */
  drain(graceMs: number): Promise<void>;
  /** Removes the breaker of a server that is no longer used. */
  forget(): void;
  /** Ends all connections and attempts. */
  close(): void;
}

export function createRedisPool(options: PoolOptions, deps: RedisPoolDeps): RedisPool {
  return new Pool(options, deps);
}

class Pool implements RedisPool {
  readonly batching: Batching;
  readonly #options: PoolOptions;
  readonly #deps: RedisPoolDeps;
  readonly #patienceMs: number;
  readonly #lanes: readonly RedisLane[];
  readonly #overflow: RedisLane;
  readonly #breaker: ServerBreaker;
  readonly #scripts: ScriptSupport;
  readonly #connectionFailures: RepeatedLog;
  readonly #requestFailures: RepeatedLog;
  active = 0;
  /** Human-readable. */
  #lastFailure: string | undefined;
  /** Whether all lanes are maintained; not yet during the start. */
  #staysOpen = false;
  #closed = false;
  /** The current attempt to open the overflow lane. */
  #overflowAttempt: Promise<void> | undefined;
  #overflowFailedMs = Number.NEGATIVE_INFINITY;
  /** Each function sends its commands, or fails them when called with an error. */
  #queuedSends: ((error: Error | undefined) => void)[] = [];
  #openSends = 0;
  /** Ends the wait of `drain`. */
  #notifySent = () => {};
  /** Ends the wait of `start`. */
  #notifyStarted = () => {};
  #cancelTrialPause = () => {};

  constructor(options: PoolOptions, deps: RedisPoolDeps) {
    const { name, clock, log } = deps;
    this.#options = options;
    this.#deps = deps;
    this.#patienceMs = toPatienceMs(options.failureMode, options.timeoutMs);
    this.#scripts = createScriptSupport(name, deps.addressSetting, log);
    this.#connectionFailures = createRepeatedLog({
      clock,
      intervalMs: connectionFailureIntervalMs,
      write: (text) =>
        log.error(
          `${text}; retrying until it answers; decisions follow KVSTORE_FAILURE_MODE=${options.failureMode}`,
        ),
    });
    this.#requestFailures = createRepeatedLog({
      clock,
      intervalMs: requestFailureIntervalMs,
      write: (text) => log.error(`a decision failed: ${text}`),
    });
    this.#lanes = Array.from({ length: options.size }, () => this.#createLane(true));
    this.#overflow = this.#createLane(false);
    this.#breaker = deps.outages.addServer(name, (state, before) =>
      this.#breakerChanged(state, before),
    );
    this.batching = this.#createBatching();
  }

  get lastProblem(): string | undefined {
    return this.#scripts.describe() ?? this.#lastFailure;
  }

  async tryToOpen(signal: AbortSignal): Promise<void> {
    try {
      await this.#lanes[0]?.tryToOpen(signal);
    } catch (error) {
      if (!signal.aborted && !this.#closed) this.#attemptFailed(errorText(error));
      throw error;
    }
  }

  stayOpen(): void {
    this.#staysOpen = true;
    if (this.#breaker.state === 'closed') for (const lane of this.#lanes) lane.stayOpen();
    else this.#lanes[0]?.stayOpen();
  }

  start(): Promise<void> {
    return new Promise((resolve) => {
      const patienceMs = this.#patienceMs;
      const cancel = this.#deps.clock.after(patienceMs, () => {
        this.#breaker.open(`could not connect within ${patienceMs} ms`);
      });
      this.#notifyStarted = () => {
        cancel();
        resolve();
      };
      this.stayOpen();
    });
  }

  sendCommands(commands: readonly CommandText[], done: (replies: RawReply[]) => void): void {
    this.#openSends++;
    this.#trySend(commands, (replies) => {
      this.#openSends--;
      if (this.#openSends === 0) this.#notifySent();
      done(replies);
    });
  }

  async drain(graceMs: number): Promise<void> {
    await Promise.all([this.batching.drain(graceMs), this.#drainSends(graceMs)]);
  }

  forget(): void {
    this.#breaker.remove();
  }

  close(): void {
    this.#closed = true;
    this.#cancelTrialPause();
    this.#notifyStarted();
    this.#closeOverflow();
    for (const lane of this.#lanes) lane.close();
    this.#endQueuedSends(new Error('the connection was closed'));
  }

  #createBatching(): Batching {
    const { name, knownExpiries, clock, log } = this.#deps;
    const { jitterMaxSeconds, onEmpty, pipelineWindowMs, describeRemedy } = this.#options;
    return new Batching({
      name,
      operations: {
        name,
        knownExpiries,
        scripts: this.#scripts,
        clock,
        jitterMaxSeconds,
        describeRemedy,
      },
      lanes: this.#lanes,
      overflow: this.#overflow,
      openOverflow: () => this.#openOverflow(),
      closeOverflow: () => this.#closeOverflow(),
      breaker: this.#breaker,
      clock,
      log,
      onRequestFailure: (error) => this.#requestFailed(error),
      patienceMs: this.#patienceMs,
      onEmptyPool: onEmpty,
      pipelineWindowMs,
    });
  }

  #createLane(reconnects: boolean): RedisLane {
    const { clock, open, redirect } = this.#deps;
    const { timeoutMs, maxAgeMs, closeOnReadonlyError } = this.#options;
    return new RedisLane({
      clock,
      open,
      reconnects,
      timeoutMs,
      maxAgeMs,
      redirect,
      closeOnReadonlyError,
      onOpen: () => this.#connectionOpened(),
      onEnd: (reason, byUs) => this.#connectionEnded(reason, byUs),
      onFailure: (reason) => {
        this.#attemptFailed(reason);
        this.#reportIfAway(reason);
      },
    });
  }

  /** Logs the failure only where decisions fail; otherwise the failure policy logs it. */
  #requestFailed(error: AppError): void {
    const isReported = error instanceof NoScripts;
    if (this.#options.failureMode === 'error' && !isReported) {
      this.#requestFailures.report(error.message);
    }
  }

  #connectionOpened(): void {
    const { name, log, totals } = this.#deps;
    this.active++;
    const outage = this.active === 1 ? this.#connectionFailures.recover() : undefined;
    if (outage !== undefined) {
      const { seconds, times } = outage;
      log.notice(`${name}: answers again after ${seconds.toFixed(1)} s (${times} failures)`);
    }
    totals.opened();
    this.#endQueuedSends(undefined);
    this.#notifyStarted();
    this.#breaker.halfOpen();
    // During the start there is no request to try the server with.
    if (!this.#staysOpen) this.#breaker.close();
    this.batching.lanesChanged();
  }

  #connectionEnded(reason: string, byUs: boolean): void {
    this.active--;
    if (!this.#closed) {
      this.#noteFailure(reason);
      this.#reportIfAway(reason);
    }
    this.#deps.totals.ended(byUs);
    if (this.#closed) return;
    if (this.active === 0 && this.#breaker.state === 'half-open') this.#breaker.open(reason);
    this.#deps.onFailure?.();
  }

  #attemptFailed(reason: string): void {
    this.#noteFailure(reason);
    if (this.active === 0) this.#breaker.open(this.#withRemedy(reason));
    this.#deps.onFailure?.();
  }

  #withRemedy(reason: string): string {
    const remedy = this.#options.describeRemedy(reason);
    return remedy === undefined ? reason : `${reason.replace(/\.$/, '')}; ${remedy}`;
  }

  #noteFailure(reason: string): void {
    const at = new Date(this.#deps.clock.wallMs()).toISOString();
    this.#lastFailure = `last failure at ${at}: ${reason}`;
  }

  #reportIfAway(reason: string): void {
    if (this.active > 0) return;
    this.#connectionFailures.report(`${this.#deps.name}: ${this.#withRemedy(reason)}`);
  }

  #breakerChanged(state: BreakerState, before: BreakerState): void {
    if (this.#closed) return;
    if (state === 'open') this.#goAway(before === 'half-open' ? trialPauseMs : 0);
    else if (state === 'closed' && this.#staysOpen) this.stayOpen();
    this.batching.lanesChanged();
  }

  /** Treats the server as unreachable: from now on only one lane tries to connect, one attempt at a time. */
  #goAway(pauseMs: number): void {
    const { refusal, reason } = this.#breaker;
    for (const lane of this.#lanes) lane.halt(reason);
    this.#closeOverflow();
    this.#endQueuedSends(refusal);
    this.#notifyStarted();
    if (!this.#staysOpen) return;
    const tryAgain = () => this.#lanes[0]?.stayOpen();
    if (pauseMs === 0) tryAgain();
    else this.#cancelTrialPause = this.#deps.clock.after(pauseMs, tryAgain);
  }

  #trySend(commands: readonly CommandText[], done: (replies: RawReply[]) => void): void {
    if (this.#lanes.some((lane) => lane.sendCommands(commands, done))) return;
    const fail = (error: Error) => setImmediate(() => done(commands.map(() => error)));
    const end = (error: Error | undefined) => {
      if (error !== undefined) fail(error);
      else this.#trySend(commands, done);
    };
    const refusal = this.#closed ? new Error('the connection was closed') : this.#breaker.refusal;
    if (refusal !== undefined) fail(refusal);
    else this.#queuedSends.push(end);
  }

  #endQueuedSends(error: Error | undefined): void {
    const ending = this.#queuedSends;
    this.#queuedSends = [];
    for (const end of ending) end(error);
  }

  #drainSends(graceMs: number): Promise<void> {
    return new Promise((resolve) => {
      const cancelGrace = this.#deps.clock.after(graceMs, resolve);
      this.#notifySent = () => {
        cancelGrace();
        resolve();
      };
      if (this.#openSends === 0) this.#notifySent();
    });
  }

  #openOverflow(): void {
    const { clock } = this.#deps;
    if (this.#overflow.isOpen || this.#overflowAttempt !== undefined || this.#closed) return;
    if (clock.monotonicMs() - this.#overflowFailedMs < overflowRetryMs) return;
    const attempt = this.#overflow.tryToOpen(new AbortController().signal);
    this.#overflowAttempt = attempt;
    const end = (error?: unknown) => {
      // The attempt was abandoned, which reveals nothing about the server.
      if (this.#overflowAttempt !== attempt) return;
      this.#overflowAttempt = undefined;
      if (error === undefined) return;
      this.#overflowFailedMs = clock.monotonicMs();
      this.#attemptFailed(errorText(error));
    };
    attempt.then(() => end(), end);
  }

  #closeOverflow(): void {
    this.#overflowAttempt = undefined;
    this.#overflow.halt('closed');
  }
}
