// Notified of requests that are answered OVER_LIMIT, to find which values are limited.

import type { LimitedHit } from './hit.ts';
import type { DescriptorStatus, RateLimitRequest } from './message.ts';

export interface OverLimitObserver {
  /** `statuses` are by descriptor, `limited` are the hits on limits in their order. Called for each such request:
   * it must be cheap, and must not keep the request. */
  overLimit(
    request: RateLimitRequest,
    limited: readonly LimitedHit[],
    statuses: readonly DescriptorStatus[],
    nowSeconds: number,
  ): void;
}
