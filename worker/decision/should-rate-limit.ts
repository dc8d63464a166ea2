// (placeholder, replaced by its owner)
import type { AppError } from '../../shared/errors.ts';
import type { RateLimitRequest, RateLimitResponse } from './message.ts';

export type DecisionOutcome =
  | { readonly ok: true; readonly response: RateLimitResponse }
  | { readonly ok: false; readonly error: AppError };

/**
 * Answers one request; never throws and never blocks past the deadline.
 *
 * `timeoutMs`: how long the caller waits (grpc-timeout), undefined when it did not say; the store's
 * own timeout bounds the decision in any case. `done` is called exactly once, possibly before
 * `shouldRateLimit` returns. The returned function tells that the caller is gone: hits that were not
 * yet sent to the store are then not counted (and `done` may still be called).
 */
export type ShouldRateLimit = (
  request: RateLimitRequest,
  timeoutMs: number | undefined,
  done: (outcome: DecisionOutcome) => void,
) => () => void;
