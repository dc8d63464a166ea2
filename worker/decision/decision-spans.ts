// The spans of a decision.
import type { Span, SpanParent } from '../../shared/tracing.ts';
import type { Hit } from '../counters/store.ts';
import type { RateLimitRequest } from './message.ts';

export interface DecisionSpans {
  startDecision(parent: SpanParent, request: RateLimitRequest): Span;
  /**
   * The span of one decision's wait for its counters. Decisions share the store's round trips: each has a
   * span of its own around a batch that serves many, with the number of its own counters. Undefined when
   * the store is in this process.
   */
  startStoreCall(parent: SpanParent, hits: readonly Hit[]): Span | undefined;
}
