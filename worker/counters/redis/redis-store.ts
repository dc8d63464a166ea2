// The counter store over one Redis server: puts lanes, codec and batching together, connects at
// start, and tells log, health and metrics how the connections fare.
import type { Clock } from '../../../shared/clock.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { Counter, Gauge } from '../../metrics/metric.ts';
import { createBatchingStore } from '../batching-store.ts';
import { createFailureLog } from '../failure-log.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import type { CounterStore } from '../store.ts';
import { type StoreTarget, showStoreAddress } from './address.ts';
import { openConnection } from './connection.ts';
import type { ReadCredentials } from './credentials.ts';
import { createOperationCodec } from './operation-codec.ts';
import { createRedisLane, type RedisLane } from './redis-lane.ts';

/** Two, so that one slow reply does not hold up everything; more only make batches smaller. */
const laneCount = 2;
/** A failure that lasts is said again this often. */
const requestFailureIntervalMs = 5_000;
const connectionFailureIntervalMs = 30_000;
/** At start the attempts themselves are spaced; this bounds the lines when they are set close. */
const startFailureIntervalMs = 900;

export interface RedisStoreOptions {
  readonly target: StoreTarget;
  /** The name of the setting that the target comes from, for texts. */
  readonly addressSetting: string;
  /** Asked for each attempt to connect, instead of using those of the target. */
  readonly readCredentials?: ReadCredentials | undefined;
  /** KVSTORE_TIMEOUT: for connecting and for each answer. */
  readonly timeoutMs: number;
  /** KVSTORE_PIPELINE_WINDOW. */
  readonly pipelineWindowMs: number;
  /** EXPIRATION_JITTER_MAX_SECONDS. */
  readonly jitterMaxSeconds: number;
  /** The attempts of `connect` (reference-behaviour 9.2). */
  readonly startup: {
    readonly initialIntervalMs: number;
    readonly maxIntervalMs: number;
    /** 0: for ever. */
    readonly maxElapsedMs: number;
  };
}

export interface RedisStoreDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** `<pool>.cx_active`, `.cx_total` and `.cx_local_close` (reference-behaviour 6.1). */
  readonly connections: {
    readonly active: Gauge;
    readonly total: Counter;
    readonly localClose: Counter;
  };
  /** Called with true when there is a connection again and with false when there is none any more,
   * also for the first one (KVSTORE_HEALTH_CHECK_ACTIVE_CONNECTION, reference-behaviour 3.5). */
  readonly onHealthChange: (healthy: boolean) => void;
}

export function createRedisStore(options: RedisStoreOptions, deps: RedisStoreDeps): CounterStore {
  const { target, timeoutMs, startup } = options;
  const { clock, log, connections } = deps;
  const address = showStoreAddress(target.address);
  const name = `key-value store ${address}`;
  const readCredentials = options.readCredentials ?? (() => Promise.resolve(target.credentials));
  const connectionDeps = { target, readCredentials, timeoutMs, clock };
  const codec = createOperationCodec({
    name,
    knownExpiries: createKnownExpiries(clock),
    jitterMaxSeconds: options.jitterMaxSeconds,
  });
  const connectionFailures = createFailureLog({
    clock,
    intervalMs: connectionFailureIntervalMs,
    write: (text) => log.error(`${text}; trying again until it answers`),
  });
  const startFailures = createFailureLog({
    clock,
    intervalMs: startFailureIntervalMs,
    write: (text) => log.warning(text),
  });
  let active = 0;
  let unavailable: AppError | undefined;
  let stateSince = new Date(clock.wallMs());
  let lastFailure: string | undefined;
  let closed = false;
  const lanes: readonly RedisLane[] = Array.from({ length: laneCount }, createLane);
  const batching = createBatchingStore({
    laneSet: {
      name,
      lanes,
      get unavailable() {
        return unavailable;
      },
    },
    clock,
    log,
    requestFailures: createFailureLog({
      clock,
      intervalMs: requestFailureIntervalMs,
      write: (text) => log.error(`a decision failed: ${text}`),
    }),
    timeoutMs,
    pipelineWindowMs: options.pipelineWindowMs,
  });

  return { count: batching.count, connect, state, close };

  function createLane(): RedisLane {
    return createRedisLane({
      clock,
      codec,
      open: (signal) => openConnection(connectionDeps, signal),
      onOpen: connectionOpened,
      onEnd: connectionEnded,
      onFailure: (reason) => {
        attemptFailed(reason);
        if (active === 0) connectionFailures.failed(`${name}: ${reason}`);
      },
    });
  }

  function connectionOpened(): void {
    active++;
    connections.total.add(1);
    connections.active.set(active);
    unavailable = undefined;
    if (active === 1) {
      stateSince = new Date(clock.wallMs());
      const outage = connectionFailures.recover();
      if (outage !== undefined) {
        const { seconds, failures } = outage;
        log.warning(`${name}: answers again after ${seconds.toFixed(1)} s (${failures} failures)`);
      }
      deps.onHealthChange(true);
    }
    batching.lanesChanged();
  }

  function connectionEnded(reason: string, byUs: boolean): void {
    active--;
    connections.active.set(active);
    if (byUs) connections.localClose.add(1);
    lastFailure = reason;
    if (active > 0 || closed) return;
    stateSince = new Date(clock.wallMs());
    connectionFailures.failed(`${name}: ${reason}`);
    deps.onHealthChange(false);
  }

  function attemptFailed(reason: string): void {
    lastFailure = reason;
    if (active > 0) return;
    unavailable = new AppError('store', `${name}: ${reason}`);
    batching.lanesChanged();
  }

  async function connect(signal: AbortSignal): Promise<void> {
    const [first, ...others] = lanes;
    const startMs = clock.monotonicMs();
    let intervalMs = startup.initialIntervalMs;
    while (!(await tryFirst(first, signal))) {
      const elapsedMs = clock.monotonicMs() - startMs;
      if (startup.maxElapsedMs > 0 && elapsedMs >= startup.maxElapsedMs) {
        throw new AppError(
          'cannot_start',
          `${name} did not answer within ${startup.maxElapsedMs / 1000} s: ${lastFailure}`,
        );
      }
      startFailures.failed(
        `${name}: ${lastFailure}; next attempt in ${intervalMs / 1000} s ` +
          `(${options.addressSetting} says where it is)`,
      );
      await wait(intervalMs, signal);
      intervalMs = Math.min(startup.maxIntervalMs, intervalMs * 2);
    }
    const waited = startFailures.recover();
    if (waited !== undefined) log.warning(`${name}: answers, after ${waited.seconds.toFixed(1)} s`);
    for (const lane of others) lane.keepOpen();
  }

  async function tryFirst(lane: RedisLane | undefined, signal: AbortSignal): Promise<boolean> {
    try {
      await lane?.tryToOpen(signal);
      return true;
    } catch (error) {
      if (signal.aborted || closed) throw stopped();
      attemptFailed(errorText(error));
      return false;
    }
  }

  function wait(delayMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        cancel();
        reject(stopped());
      };
      const cancel = clock.after(delayMs, () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
      });
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
    });
  }

  function stopped(): AppError {
    return new AppError('cannot_start', `stopped while waiting for ${name}`);
  }

  function state() {
    const healthy = active > 0;
    const since = stateSince.toISOString();
    const what = healthy
      ? `connected to ${address} since ${since} (${active} of ${laneCount} connections)`
      : `not connected to ${address} since ${since}`;
    const failure = lastFailure === undefined ? '' : `; last failure: ${lastFailure}`;
    return { healthy, detail: `${what}${failure}` };
  }

  async function close(graceMs: number): Promise<void> {
    await batching.drain(graceMs);
    closed = true;
    for (const lane of lanes) lane.close();
  }
}
