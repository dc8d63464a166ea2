// The spans of a decision and of its call of the store, named as in the reference
// (behaviour: spans).
import type { Hit } from './counters/store.ts';
import type { StoreCall } from './counters/store-kinds.ts';
import { toRequestText } from './decision/message-text.ts';
import type { DecisionSpans } from './decision/should-rate-limit.ts';

/** `describeCall`: how the store's span is named; undefined for no span. */
export function createDecisionSpans(
  describeCall: (hits: readonly Hit[]) => StoreCall | undefined,
): DecisionSpans {
  return {
    startDecision: (parent, request) =>
      parent.startSpan('ratelimit', 'ShouldRateLimit Execution', {
        domain: request.domain,
        'request string': toRequestText(request),
      }),
    startStoreCall(parent, hits) {
      const call = describeCall(hits);
      return call && parent.startSpan(call.scope, call.name, call.attributes);
    },
  };
}
