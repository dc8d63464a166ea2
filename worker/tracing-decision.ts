// The spans of a decision and of its call of the store, named as in the reference
// (behaviour: spans).
import type { Hit } from './counters/store.ts';
import { type StoreKind, storeAbilities } from './counters/store-kinds.ts';
import { toRequestText } from './decision/message-text.ts';
import type { DecisionSpans } from './decision/should-rate-limit.ts';

export function createDecisionSpans({
  backend,
  hasPerSecondStore,
}: {
  readonly backend: StoreKind;
  readonly hasPerSecondStore: boolean;
}): DecisionSpans {
  return {
    startDecision: (parent, request) =>
      parent.startSpan('ratelimit', 'ShouldRateLimit Execution', {
        domain: request.domain,
        'request string': toRequestText(request),
      }),
    startStoreCall(parent, hits) {
      if (!storeAbilities[backend].needsServer) return undefined;
      if (backend === 'memcached') {
        return parent.startSpan('memcached.cacheImpl', 'Memcached Fetch Execution', {
          'keysToGet length': hits.length,
        });
      }
      const perSecond = hasPerSecondStore ? hits.filter(isPerSecond).length : 0;
      return parent.startSpan('redis.fixedCacheImpl', 'Redis Pipeline Execution', {
        'pipeline length': hits.length - perSecond,
        'perSecondPipeline length': perSecond,
      });
    },
  };
}

function isPerSecond({ unit }: Hit): boolean {
  return unit === 'second';
}
