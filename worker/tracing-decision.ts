// The spans of a decision and of its call of the store, named as in the reference
// (behaviour: spans).
import type { Span, SpanParent } from '../shared/tracing.ts';
import type { Hit } from './counters/store.ts';
import type { RateLimitRequest } from './decision/message.ts';
import { toRequestText } from './decision/message-text.ts';

export interface DecisionSpans {
  startDecision(parent: SpanParent, request: RateLimitRequest): Span;
  /**
   * The wait of one decision for its counters. Decisions share the store's round trips, so that each
   * has a span of its own around a batch that serves many; the lengths are of its own counters.
   * Undefined when the store is in this process.
   */
  startStoreCall(parent: SpanParent, hits: readonly Hit[]): Span | undefined;
}

export function createDecisionSpans({
  backend,
  hasPerSecondStore,
}: {
  readonly backend: 'redis' | 'memcached' | 'memory';
  readonly hasPerSecondStore: boolean;
}): DecisionSpans {
  return {
    startDecision: (parent, request) =>
      parent.startSpan('ratelimit', 'ShouldRateLimit Execution', {
        domain: request.domain,
        'request string': toRequestText(request),
      }),
    startStoreCall(parent, hits) {
      if (backend === 'memory') return undefined;
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
