// The kind of store that counts in Redis: what it can, and how it is made from the settings, with a second one for
// limits per second where that is configured.
import type { AddressSettings, CountingSettings } from '../counting-settings.ts';
import type { CounterStore, Hit } from '../store.ts';
import type { StoreKind, StoreKindDeps } from '../store-kinds.ts';
import { checkKeyValueStores, listStoreTlsFiles, warnKeyValueStores } from './redis-checks.ts';

export const redisKind: StoreKind = {
  words: ['kvstore', 'redis'],
  limiters: true,
  countsBeforeAnswer: true,
  isShared: true,
  needsServer: true,
  check: checkKeyValueStores,
  warn: warnKeyValueStores,
  tlsFiles: listStoreTlsFiles,
  agreementParts,
  describeCall,
  create,
};

function agreementParts({ store, perSecondStore }: AddressSettings): string[] {
  return [
    `database: ${store.target?.database}`,
    `limits per second: ${
      perSecondStore.enabled
        ? `in a store of their own, database ${perSecondStore.target?.database}`
        : 'in the same store'
    }`,
  ];
}

function describeCall(hits: readonly Hit[], { perSecondStore }: CountingSettings) {
  const perSecond = perSecondStore.enabled ? hits.filter(isPerSecond).length : 0;
  return {
    scope: 'redis.fixedCacheImpl',
    name: 'Redis Pipeline Execution',
    attributes: {
      'pipeline length': hits.length - perSecond,
      'perSecondPipeline length': perSecond,
    },
  };
}

function isPerSecond({ unit }: Hit): boolean {
  return unit === 'second';
}

async function create(
  settings: CountingSettings,
  { health, metrics, log, clock, addOutages }: StoreKindDeps,
): Promise<CounterStore> {
  const { createRedisStore } = await import('./redis-store.ts');
  const { toRedisStoreOptions } = await import('./redis-options.ts');
  const isConnected = { store: true, perSecondStore: true };
  const createOne = (which: 'store' | 'perSecondStore', pool: string): CounterStore => {
    const prefix = which === 'store' ? 'ratelimit.store' : 'ratelimit.per_second_store';
    return createRedisStore(toRedisStoreOptions(settings, which, clock), {
      clock,
      log,
      outages: addOutages(prefix),
      callDuration: metrics.storeCallDuration,
      clockOffset: metrics.gauge(`${prefix}.clock_offset_ms`),
      connections: {
        active: metrics.gauge(`ratelimit.${pool}.cx_active`),
        total: metrics.counter(`ratelimit.${pool}.cx_total`),
        localClose: metrics.counter(`ratelimit.${pool}.cx_local_close`),
      },
      onHealthChange: (isNowConnected) => {
        isConnected[which] = isNowConnected;
        if (!settings.health.needsStoreConnection) return;
        health.set('store', isConnected.store && isConnected.perSecondStore);
      },
    });
  };
  const main = createOne('store', 'redis_pool');
  if (!settings.perSecondStore.enabled) return main;
  const { createPerSecondStore } = await import('../per-second-store.ts');
  return createPerSecondStore({
    main,
    perSecond: createOne('perSecondStore', 'redis_per_second_pool'),
    continuesOnError: settings.counting.failureMode !== 'error',
  });
}
