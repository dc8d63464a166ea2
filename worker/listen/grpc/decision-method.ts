// ShouldRateLimit over gRPC: bytes in, the decision, bytes out.
import type { ServerSpan, Span, Tracer } from '../../../shared/tracing.ts';
import type { RequestBounds } from '../../decision/request-bounds.ts';
import type { DecisionOutcome, ShouldRateLimit } from '../../decision/should-rate-limit.ts';
import type { RpcSpanDescription } from '../../tracing-rpc.ts';
import { grpcStatus, type UnaryCall, type UnaryMethod } from './method.ts';
import { decodeRateLimitRequest } from './request-decoder.ts';
import { encodeRateLimitResponse } from './response-encoder.ts';
import { createUnaryMethod, type UnaryMethodDeps } from './unary-method.ts';

export interface DecisionMethodDeps extends UnaryMethodDeps {
  readonly shouldRateLimit: ShouldRateLimit;
  readonly requestBounds?: RequestBounds;
  /** Undefined: no spans are made. */
  readonly tracing?: RpcTracing | undefined;
}

export interface RpcTracing {
  readonly tracer: Tracer;
  readonly description: RpcSpanDescription;
}

export const decisionMethodName = 'ShouldRateLimit';
export const decisionMethodPath = `/envoy.service.ratelimit.v3.RateLimitService/${decisionMethodName}`;
const scope = 'ratelimit grpc server';

const lateText = 'the deadline of the call has passed';

/** Every failure is UNKNOWN with its plain message, whatever it is (behaviour: errors-over-grpc),
 * except that the caller's time was over. */
export function createDecisionMethod(deps: DecisionMethodDeps): UnaryMethod {
  const { shouldRateLimit, requestBounds, log, clock, tracing } = deps;
  const isLate = ({ timeoutMs, receivedMs }: UnaryCall) =>
    timeoutMs !== undefined && clock.monotonicMs() - receivedMs >= timeoutMs;

  return createUnaryMethod(deps, {
    name: decisionMethodName,
    duration: deps.metrics.decisionDuration,
    decode: (bytes, start, end) => decodeRateLimitRequest(bytes, start, end, requestBounds),
    handle(request, call) {
      const span = tracing === undefined ? undefined : startSpan(tracing, call);
      return shouldRateLimit(
        request,
        call.timeoutMs,
        (outcome) => {
          if (tracing !== undefined && span !== undefined) endSpan(tracing, span, outcome);
          if (outcome.ok) {
            const encoded = encodeRateLimitResponse(outcome.response);
            call.succeed(encoded.bytes, encoded.length);
          } else {
            if (log.isDebug) log.debug(`caught error during call: ${outcome.error.message}`);
            if (isLate(call)) call.fail(grpcStatus.deadlineExceeded, lateText);
            else call.fail(grpcStatus.unknown, outcome.error.message);
          }
        },
        span,
      );
    },
  });
}

function startSpan({ tracer, description }: RpcTracing, call: UnaryCall): ServerSpan | undefined {
  const span = tracer.startServerSpan(scope, description.name, (name) => call.header(name));
  span?.set({ ...description.method, ...description.toPeer(call.peer()) });
  return span;
}

function endSpan({ description }: RpcTracing, span: Span, outcome: DecisionOutcome): void {
  span.set(description.toStatus(outcome.ok ? 'OK' : 'UNKNOWN'));
  span.end(outcome.ok ? undefined : outcome.error.message);
}
