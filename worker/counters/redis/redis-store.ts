// The counter store over Redis. For one server, which is fixed or named by sentinels, it makes pool and connections and
// starts them. cluster-store.ts is for clusters.

import { createKnownExpiries } from '../known-expiries.ts';
import type { CounterStore } from '../store.ts';
import { type StoreAddress, type StoreGroup, showStoreAddress } from './address.ts';
import { ClusterStore } from './cluster-store.ts';
import type { Connection } from './connection.ts';
import { openConnection } from './connection-opening.ts';
import { createConnectionTotals } from './connection-totals.ts';
import { awaitFirstConnection } from './first-connection.ts';
import { createRedisPool } from './redis-pool.ts';
import { createMasterOpener } from './sentinel.ts';
import {
  createStoreClockComparison,
  type RedisStoreDeps,
  type RedisStoreOptions,
  toConnectionDeps,
} from './store-deps.ts';

/** The server itself, or the sentinels that name it. */
type ServerAddress = StoreAddress | (StoreGroup & { readonly kind: 'sentinel' });

export function createRedisStore(options: RedisStoreOptions, deps: RedisStoreDeps): CounterStore {
  const { startup, addressSetting } = options;
  const target = options.target.address;
  if (target.kind === 'cluster') return new ClusterStore(options, deps, target);
  const { clock, log } = deps;
  const address = showStoreAddress(target);
  const name = `key-value store ${address}`;
  const closing = new AbortController();
  const totals = createConnectionTotals(deps);
  const open = createOpen(options, target, deps, closing.signal);
  const clockComparison = createStoreClockComparison(deps, name, open);
  const pool = createRedisPool(options.pool, {
    name,
    addressSetting,
    open,
    knownExpiries: createKnownExpiries(),
    totals,
    outages: deps.outages,
    clock,
    log,
  });

  return { count: (request) => pool.batching.count(request), connect, state, close };

  async function connect(signal: AbortSignal): Promise<void> {
    // With a failure mode that answers without the store, the start does not wait for the store.
    if (options.pool.failureMode === 'error') {
      await awaitFirstConnection(
        {
          name,
          addressSetting,
          describeRemedy: options.pool.describeRemedy,
          startup,
          tryToConnect: (attempt) => pool.tryToOpen(attempt),
          clock,
          random: Math.random,
          log,
        },
        AbortSignal.any([signal, closing.signal]),
      );
      pool.stayOpen();
    } else {
      await pool.start();
      // Nothing else logs that no connection was ever made.
      if (totals.active === 0) deps.onHealthChange(false);
    }
    clockComparison?.start();
  }

  function state() {
    const { active, since } = totals;
    const what =
      active > 0
        ? `connected to ${address} since ${since.toISOString()} (${active} of ${options.pool.size} connections)`
        : `not connected to ${address} since ${since.toISOString()}`;
    return {
      healthy: active > 0,
      detail: [what, clockComparison?.describe(), pool.lastProblem].filter(Boolean).join('; '),
    };
  }

  async function close(graceMs: number): Promise<void> {
    closing.abort();
    clockComparison?.close();
    await pool.drain(graceMs);
    totals.close();
    pool.close();
  }
}

/** Returns the function that opens the next connection to the server. */
function createOpen(
  options: RedisStoreOptions,
  address: ServerAddress,
  deps: RedisStoreDeps,
  closing: AbortSignal,
): (signal: AbortSignal) => Promise<Connection> {
  const common = toConnectionDeps(options, deps);
  switch (address.kind) {
    case 'tcp':
    case 'unix':
      return (signal) => openConnection({ ...common, address }, signal);
    case 'sentinel': {
      const { sentinelCredentials } = options;
      return createMasterOpener({
        ...common,
        group: address,
        sentinelCredentials,
        closing,
      });
    }
  }
}
