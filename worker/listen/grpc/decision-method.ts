// ShouldRateLimit over gRPC: bytes in, the decision, bytes out.

import type { UnaryCall, UnaryMethod } from '../../../shared/grpc/method.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import type { ServerSpan, Span, Tracer } from '../../../shared/tracing.ts';
import type { RequestBounds } from '../../decision/request-bounds.ts';
import type { Caller, DecisionOutcome, ShouldRateLimit } from '../../decision/should-rate-limit.ts';
import type { RpcSpanDescription } from '../../tracing-rpc.ts';
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

export function createDecisionMethod(deps: DecisionMethodDeps): UnaryMethod {
  const { shouldRateLimit, requestBounds, tracing } = deps;

  return createUnaryMethod(deps, {
    name: decisionMethodName,
    duration: deps.metrics.decisionDuration,
    decode: (bytes, start, end) => decodeRateLimitRequest(bytes, start, end, requestBounds),
    handle(request, call) {
      const span = tracing === undefined ? undefined : startSpan(tracing, call);
      const caller = new GrpcCaller(deps, call, span);
      return shouldRateLimit(request, call.receivedMs, call.deadlineMs, caller, span);
    },
  });
}

/** Every failure is UNKNOWN with its plain message (behaviour: errors-over-grpc), except an expired
 * deadline of the caller. */
class GrpcCaller implements Caller {
  readonly #deps: DecisionMethodDeps;
  readonly #call: UnaryCall;
  readonly #span: ServerSpan | undefined;

  constructor(deps: DecisionMethodDeps, call: UnaryCall, span: ServerSpan | undefined) {
    this.#deps = deps;
    this.#call = call;
    this.#span = span;
  }

  settle(outcome: DecisionOutcome): void {
    const { tracing, log } = this.#deps;
    if (tracing !== undefined && this.#span !== undefined) endSpan(tracing, this.#span, outcome);
    if (outcome.ok) {
      const encoded = encodeRateLimitResponse(outcome.response);
      this.#call.succeed(encoded.bytes, encoded.length);
      return;
    }
    if (log.isDebug) log.debug(`caught error during call: ${outcome.error.message}`);
    if (this.#isLate()) this.#call.fail(grpcStatus.deadlineExceeded, lateText);
    else this.#call.fail(grpcStatus.unknown, outcome.error.message);
  }

  #isLate(): boolean {
    const { deadlineMs } = this.#call;
    return deadlineMs !== undefined && this.#deps.clock.monotonicMs() >= deadlineMs;
  }
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
