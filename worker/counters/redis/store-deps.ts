// The options and dependencies of every kind of key-value store, and what its connections share.
import type { Clock } from '../../../shared/clock.ts';
import type { Log } from '../../../shared/log.ts';
import type { ClientTlsOptions } from '../../client-tls.ts';
import type { Gauge, Metrics } from '../../metrics.ts';
import type { Outages } from '../failure/outages.ts';
import type { StoreTarget } from './address.ts';
import { type ClockComparison, createClockComparison } from './clock-comparison.ts';
import type { Connection } from './connection.ts';
import type { OpeningDeps } from './connection-opening.ts';
import { createConnectionTls } from './connection-tls.ts';
import type { ConnectionTotalsDeps } from './connection-totals.ts';
import type { Credentials, ReadCredentials } from './credentials.ts';
import type { StartupOptions } from './first-connection.ts';
import type { PoolOptions } from './redis-pool.ts';

export interface RedisStoreOptions {
  readonly target: StoreTarget;
  /** The name of the target's setting, for messages. */
  readonly addressSetting: string;
  /** Called for each attempt to connect, instead of using the target's credentials. */
  readonly readCredentials?: ReadCredentials | undefined;
  /** KVSTORE_SENTINEL_AUTH. */
  readonly sentinelCredentials: Credentials | undefined;
  /** Undefined for no TLS. */
  readonly tls: ClientTlsOptions | undefined;
  readonly pool: PoolOptions;
  /**
   * KVSTORE_CLUSTER_PIPELINE_PARALLELISM: how many nodes are asked at the same time for one decision; 0 for as many as
   * the pool has slots, which is also the maximum.
   */
  readonly clusterParallelism: number;
  /** Waits between the attempts of `connect`. */
  readonly startup: StartupOptions;
}

export interface RedisStoreDeps extends ConnectionTotalsDeps {
  readonly clock: Clock;
  readonly log: Log;
  /** A breaker for each server is added to it. */
  readonly outages: Outages;
  readonly callDuration: Metrics['storeCallDuration'];
  /** Set to the difference of the clocks in milliseconds; without a gauge they are not compared. */
  readonly clockOffset?: Gauge;
}

/** The dependencies of connections to servers that count; the address is chosen for each connection. */
export function toConnectionDeps(
  { target, tls, pool, readCredentials }: RedisStoreOptions,
  { callDuration, clock }: Pick<RedisStoreDeps, 'callDuration' | 'clock'>,
): Omit<OpeningDeps, 'address'> {
  const { credentials, database } = target;
  return {
    database,
    readCredentials: readCredentials ?? (() => Promise.resolve(credentials)),
    tls: tls && createConnectionTls(tls),
    timeoutMs: pool.timeoutMs,
    callDuration,
    clock,
  };
}

/** Undefined without a gauge for the difference. */
export function createStoreClockComparison(
  { clock, log, clockOffset }: RedisStoreDeps,
  name: string,
  open: (signal: AbortSignal) => Promise<Connection>,
): ClockComparison | undefined {
  return clockOffset && createClockComparison({ name, open, offset: clockOffset, clock, log });
}
