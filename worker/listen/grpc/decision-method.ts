// ShouldRateLimit over gRPC: bytes in, the decision, bytes out.
import type { ShouldRateLimit } from '../../decision/should-rate-limit.ts';
import { grpcStatus, type UnaryMethod } from './method.ts';
import { decodeRateLimitRequest } from './request-decoder.ts';
import { encodeRateLimitResponse } from './response-encoder.ts';
import { createUnaryMethod, type UnaryMethodDeps } from './unary-method.ts';

/** Every failure is UNKNOWN with its plain message, whatever it is (reference-behaviour 3.3). */
export function createDecisionMethod(
  deps: UnaryMethodDeps & { readonly shouldRateLimit: ShouldRateLimit },
): UnaryMethod {
  const { shouldRateLimit, log } = deps;
  return createUnaryMethod(deps, {
    name: 'ShouldRateLimit',
    decode: decodeRateLimitRequest,
    handle: (request, timeoutMs, reply) =>
      shouldRateLimit(request, timeoutMs, (outcome) => {
        if (outcome.ok) {
          reply({ ok: true, message: encodeRateLimitResponse(outcome.response) });
          return;
        }
        if (log.isDebug) log.debug(`caught error during call: ${outcome.error.message}`);
        reply({ ok: false, status: grpcStatus.unknown, text: outcome.error.message });
      }),
  });
}
