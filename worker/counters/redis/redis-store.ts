// The counter store over one Redis server: puts pool, connections and start together.
import type { Clock } from '../../../shared/clock.ts';
import type { Log } from '../../../shared/log.ts';
import { createKnownExpiries } from '../known-expiries.ts';
import type { CounterStore } from '../store.ts';
import { type StoreTarget, showStoreAddress } from './address.ts';
import { openConnection } from './connection.ts';
import { createConnectionTls, type StoreTlsOptions } from './connection-tls.ts';
import { type ConnectionTotalsDeps, createConnectionTotals } from './connection-totals.ts';
import type { ReadCredentials } from './credentials.ts';
import { awaitFirstConnection, type StartupOptions } from './first-connection.ts';
import { createRedisPool, type PoolOptions } from './redis-pool.ts';

export interface RedisStoreOptions {
  readonly target: StoreTarget;
  /** The name of the setting that the target comes from, for texts. */
  readonly addressSetting: string;
  /** Asked for each attempt to connect, instead of using those of the target. */
  readonly readCredentials?: ReadCredentials | undefined;
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
  const { timeoutMs } = options.pool;
  const address = showStoreAddress(target.address);
  const name = `key-value store ${address}`;
  const readCredentials = options.readCredentials ?? (() => Promise.resolve(target.credentials));
  const { database } = target;
  const tls = options.tls && createConnectionTls(options.tls);
  const connectionDeps = {
    address: target.address,
    database,
    readCredentials,
    tls,
    timeoutMs,
    clock,
  };
  const closing = new AbortController();
  const totals = createConnectionTotals(deps);
  const pool = createRedisPool(options.pool, {
    name,
    open: (signal) => openConnection(connectionDeps, signal),
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
