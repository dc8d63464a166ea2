// The counter store over one Redis server, fixed or named by sentinels: puts pool, connections and
// start together.
import type { Clock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import type { CounterStore } from '../store.ts';
import { type StoreTarget, showStoreAddress } from './address.ts';
import { type Connection, openConnection } from './connection.ts';
import { createConnectionTls, type StoreTlsOptions } from './connection-tls.ts';
import { type ConnectionTotalsDeps, createConnectionTotals } from './connection-totals.ts';
import type { Credentials, ReadCredentials } from './credentials.ts';
import { awaitFirstConnection, type StartupOptions } from './first-connection.ts';
import { createRedisPool, type PoolOptions } from './redis-pool.ts';
import { createMasterOpener } from './sentinel.ts';

export interface RedisStoreOptions {
  readonly target: StoreTarget;
  /** The name of the setting that the target comes from, for texts. */
  readonly addressSetting: string;
  /** Asked for each attempt to connect, instead of using those of the target. */
  readonly readCredentials?: ReadCredentials | undefined;
  /** KVSTORE_SENTINEL_AUTH. */
  readonly sentinelCredentials: Credentials | undefined;
  /** Undefined: no TLS. */
  readonly tls: StoreTlsOptions | undefined;
  readonly pool: PoolOptions;
  /** The attempts of `connect`. */
  readonly startup: StartupOptions;
}

export interface RedisStoreDeps extends ConnectionTotalsDeps {
  readonly clock: Clock;
  readonly log: Log;
}

export function createRedisStore(options: RedisStoreOptions, deps: RedisStoreDeps): CounterStore {
  const { target, startup, addressSetting } = options;
  const { clock, log } = deps;
  const address = showStoreAddress(target.address);
  const name = `key-value store ${address}`;
  const closing = new AbortController();
  const totals = createConnectionTotals(deps);
  const pool = createRedisPool(options.pool, {
    name,
    open: createOpen(options, clock, closing.signal),
    knownExpiries: createKnownExpiries(clock),
    totals,
    clock,
    log,
  });

  return { count: pool.count, connect, state, close };

  async function connect(signal: AbortSignal): Promise<void> {
    const { tryToOpen: tryToConnect } = pool;
    await awaitFirstConnection(
      { name, addressSetting, startup, tryToConnect, clock, log },
      AbortSignal.any([signal, closing.signal]),
    );
    pool.keepOpen();
  }

  function state() {
    const { active, since } = totals;
    const what =
      active > 0
        ? `connected to ${address} since ${since.toISOString()} (${active} of ${options.pool.size} connections)`
        : `not connected to ${address} since ${since.toISOString()}`;
    const failure = pool.lastFailure === undefined ? '' : `; last failure: ${pool.lastFailure}`;
    return { healthy: active > 0, detail: `${what}${failure}` };
  }

  async function close(graceMs: number): Promise<void> {
    closing.abort();
    await pool.drain(graceMs);
    totals.close();
    pool.close();
  }
}

/** How the next connection to the server comes about. */
function createOpen(
  { target, tls, pool, sentinelCredentials, readCredentials }: RedisStoreOptions,
  clock: Clock,
  closing: AbortSignal,
): (signal: AbortSignal) => Promise<Connection> {
  const { address, database, credentials } = target;
  const common = {
    database,
    readCredentials: readCredentials ?? (() => Promise.resolve(credentials)),
    tls: tls && createConnectionTls(tls),
    timeoutMs: pool.timeoutMs,
    clock,
  };
  switch (address.kind) {
    case 'tcp':
    case 'unix':
      return (signal) => openConnection({ ...common, address }, signal);
    case 'sentinel':
      return createMasterOpener({ ...common, group: address, sentinelCredentials, closing });
    case 'cluster':
      throw new AppError('internal', 'a cluster has no one server');
  }
}
