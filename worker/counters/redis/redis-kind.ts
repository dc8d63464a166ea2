// The kind of store that counts in Redis: its capabilities, and how it is made from the settings, with a second store
// for limits per second where one is configured.

import { measureExpiry } from '../../client-tls.ts';
import { countInParts } from '../count-in-parts.ts';
import type { AddressSettings, CountingSettings } from '../counting-settings.ts';
import type { CounterStore, CountRequest, Hit } from '../store.ts';
import type { StoreKind, StoreKindDeps } from '../store-kind.ts';
import { checkKeyValueStores, listStoreTlsFiles, warnKeyValueStores } from './redis-checks.ts';

export const redisKind: StoreKind = {
  words: ['kvstore', 'redis'],
  limiters: true,
  countsBeforeAnswer: true,
  isShared: true,
  acceptsShortKeysOnly: false,
  needsServer: true,
  check: checkKeyValueStores,
  warn: warnKeyValueStores,
  tlsFiles: listStoreTlsFiles,
  storesLongKeys: ({ bothStores }) => bothStores.longKeys === 'whole',
  agreementParts,
  describeCall,
  create,
};

function agreementParts({ store, perSecondStore, bothStores }: AddressSettings): string[] {
  return [
    `database: ${store.target?.database}`,
    `limits per second: ${
      perSecondStore.enabled
        ? `in a store of their own, database ${perSecondStore.target?.database}`
        : 'in the same store'
    }`,
    // `whole` adds no line, so that the hash is that of earlier releases.
    ...(bothStores.longKeys === 'hash' ? ['keys above 1,024 bytes: hashed'] : []),
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
    const options = toRedisStoreOptions(settings, which, clock);
    const callee = which === 'store' ? 'store' : 'per_second_store';
    const prefix = `ratelimit.${callee}`;
    if (options.tls !== undefined) measureExpiry(callee, options.tls.files, { metrics, clock });
    return createRedisStore(options, {
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
  return createPerSecondStore({
    main,
    perSecond: createOne('perSecondStore', 'redis_per_second_pool'),
    continuesOnError: settings.counting.failureMode !== 'error',
  });
}

interface PerSecondStoreDeps {
  readonly main: CounterStore;
  readonly perSecond: CounterStore;
  /** Whether hits are still counted in one store when those of the same request failed in the other. */
  readonly continuesOnError: boolean;
}

/**
 * Routes hits of limits per second to a store of their own and all others to the main one (behaviour:
 * per-second-store). A request with hits for both stores goes to the main store first and then, unless that failed (or
 * `continuesOnError`), to the per-second store; concurrent requests may overtake each other in between.
 */
export function createPerSecondStore({
  main,
  perSecond,
  continuesOnError,
}: PerSecondStoreDeps): CounterStore {
  return { count, connect, state, close };

  function count(request: CountRequest): void {
    const [first] = request.hits;
    if (request.hits.length === 1 && first !== undefined) {
      (isPerSecond(first) ? perSecond : main).count(request);
      return;
    }
    const perSecondHits = request.hits.filter(isPerSecond);
    const mainHits = request.hits.filter((hit) => hit.unit !== 'second');
    const parts = [
      { hits: mainHits, count: (part: CountRequest) => main.count(part) },
      { hits: perSecondHits, count: (part: CountRequest) => perSecond.count(part) },
    ].filter(({ hits }) => hits.length > 0);
    countInParts(request, parts, { parallelism: 1, continuesOnError });
  }

  async function connect(signal: AbortSignal): Promise<void> {
    await perSecond.connect(signal);
    await main.connect(signal);
  }

  function state() {
    const [first, second] = [main.state(), perSecond.state()];
    return {
      healthy: first.healthy && second.healthy,
      detail: `main: ${first.detail}; per second: ${second.detail}`,
    };
  }

  async function close(graceMs: number): Promise<void> {
    await Promise.all([main.close(graceMs), perSecond.close(graceMs)]);
  }
}
