// ShouldRateLimit over gRPC: bytes in, the decision, bytes out.
import type { Tracer } from '../../../shared/tracing.ts';
import type { ShouldRateLimit } from '../../decision/should-rate-limit.ts';
import type { RpcSpanDescription } from '../../tracing-rpc.ts';
import { type GrpcAnswer, grpcStatus, type UnaryCaller, type UnaryMethod } from './method.ts';
import { decodeRateLimitRequest } from './request-decoder.ts';
import { encodeRateLimitResponse } from './response-encoder.ts';
import { createUnaryMethod, type UnaryMethodDeps } from './unary-method.ts';

export interface DecisionMethodDeps extends UnaryMethodDeps {
  readonly shouldRateLimit: ShouldRateLimit;
  /** Undefined: no spans are made. */
  readonly tracing?: RpcTracing | undefined;
}

export interface RpcTracing {
  readonly tracer: Tracer;
  readonly description: RpcSpanDescription;
}

const scope = 'ratelimit grpc server';

/** Every failure is UNKNOWN with its plain message, whatever it is (reference-behaviour 3.3). */
export function createDecisionMethod(deps: DecisionMethodDeps): UnaryMethod {
  const { shouldRateLimit, log, tracing } = deps;
  return createUnaryMethod(deps, {
    name: 'ShouldRateLimit',
    needsCaller: tracing !== undefined,
    decode: decodeRateLimitRequest,
    handle(request, timeoutMs, reply, caller) {
      const span = tracing === undefined ? undefined : startSpan(tracing, caller);
      const answer =
        tracing === undefined || span === undefined
          ? reply
          : (result: GrpcAnswer) => {
              span.set(tracing.description.toStatus(result.ok ? 'OK' : 'UNKNOWN'));
              span.end(result.ok ? undefined : result.text);
              reply(result);
            };
      return shouldRateLimit(
        request,
        timeoutMs,
        (outcome) => {
          if (outcome.ok) {
            answer({ ok: true, message: encodeRateLimitResponse(outcome.response) });
            return;
          }
          if (log.isDebug) log.debug(`caught error during call: ${outcome.error.message}`);
          answer({ ok: false, status: grpcStatus.unknown, text: outcome.error.message });
        },
        span,
      );
    },
  });
}

function startSpan({ tracer, description }: RpcTracing, caller: UnaryCaller | undefined) {
  const span = tracer.startServerSpan(scope, description.name, (name) => caller?.header(name));
  span?.set({ ...description.method, ...description.toPeer(caller?.peer() ?? '') });
  return span;
}
