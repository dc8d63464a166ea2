// The counter store over Redis, of whichever type it is.
import type { CounterStore } from '../store.ts';
import { createClusterStore } from './cluster-store.ts';
import { createServerStore } from './server-store.ts';
import type { RedisStoreDeps, RedisStoreOptions } from './store-deps.ts';

export function createRedisStore(options: RedisStoreOptions, deps: RedisStoreDeps): CounterStore {
  const { address } = options.target;
  return address.kind === 'cluster'
    ? createClusterStore(options, deps, address)
    : createServerStore(options, deps, address);
}
