// ShouldRateLimit over gRPC: decodes the request, decides, and encodes the answer.

import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import { type GrpcErrorStatus, grpcStatus } from '../../../shared/grpc/status.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import type { RateLimitRequest } from '../../decision/message.ts';
import type { RequestBounds } from '../../decision/request-bounds.ts';
import {
  Decision,
  type DecisionOutcome,
  type ShouldRateLimit,
} from '../../decision/should-rate-limit.ts';
import type { PendingAnswer, UnaryCall, UnaryMethod } from '../../grpc/method.ts';
import type { Duration, Timer } from '../../metrics.ts';
import type { ServerSpan, Tracer } from '../../tracing/tracer.ts';
import type { RpcSpanDescription } from '../../tracing-rpc.ts';
import { decodeRateLimitRequest } from './request-decoder.ts';
import { encodeRateLimitResponse } from './response-encoder.ts';
import { refuseUndecodable, type UnaryMethodDeps, unaryStatistics } from './unary-method.ts';

export interface DecisionMethodDeps extends UnaryMethodDeps {
  readonly shouldRateLimit: ShouldRateLimit;
  readonly requestBounds?: RequestBounds;
  /** Undefined if no spans are made. */
  readonly tracing?: RpcTracing | undefined;
}

export interface RpcTracing {
  readonly tracer: Tracer;
  readonly description: RpcSpanDescription;
}

export const decisionMethodName = 'ShouldRateLimit';
export const decisionMethodPath = `/envoy.service.ratelimit.v3.RateLimitService/${decisionMethodName}`;
const scope = 'ratelimit grpc server';

/**
 * The series only exists after the first such request: until then dashboards that list error types show only those of
 * the reference.
 */
export const undecodable = 'ratelimit.service.call.should_rate_limit.undecodable';
/** How often unreadable requests are logged. */
const refusalIntervalMs = 5_000;
const lateText = 'the deadline of the call has passed';

export function createDecisionMethod(deps: DecisionMethodDeps): UnaryMethod {
  const { shouldRateLimit, requestBounds, tracing, metrics, clock, log } = deps;
  const { totalRequests, responseTime } = unaryStatistics(metrics, decisionMethodName);
  const refusals = createRepeatedLog({
    clock,
    intervalMs: refusalIntervalMs,
    write: (text) => log.warning(`a gRPC request cannot be read, so it is not limited: ${text}`),
  });
  const way: WayBack = { clock, log, responseTime, duration: metrics.decisionDuration, tracing };
  return {
    kind: 'unary',
    answer(bytes, start, end, call) {
      const decoded = decodeRateLimitRequest(bytes, start, end, requestBounds);
      if (!decoded.ok) {
        metrics.counter(undecodable).add(1);
        refusals.report(`${decoded.position}: ${decoded.problem}`);
        refuseUndecodable(call, decoded);
        return undefined;
      }
      totalRequests.add(1);
      const decision = new GrpcDecision(decoded.message, call, way);
      try {
        shouldRateLimit(decision);
      } catch (error) {
        log.error(`defect in ${decisionMethodName}: ${errorText(error)}`);
        decision.fail(grpcStatus.internal, 'internal error');
      }
      return decision.isAnswered ? undefined : decision;
    },
  };
}

/** The parts needed to answer the caller. */
interface WayBack {
  readonly clock: Clock;
  readonly log: Log;
  readonly responseTime: Timer;
  /** The response time, not rounded. */
  readonly duration: Duration;
  readonly tracing: RpcTracing | undefined;
}

/**
 * Every failure is UNKNOWN with its plain message (behaviour: errors-over-grpc), except that the caller's deadline has
 * expired.
 */
class GrpcDecision extends Decision implements PendingAnswer {
  readonly #call: UnaryCall;
  readonly #way: WayBack;
  readonly #span: ServerSpan | undefined;
  declare isAnswered: boolean;

  constructor(request: RateLimitRequest, call: UnaryCall, way: WayBack) {
    const span = way.tracing && startSpan(way.tracing, call);
    super(request, call.receivedMs, call.deadlineMs, span);
    this.#call = call;
    this.#way = way;
    this.#span = span;
    this.isAnswered = false;
  }

  override cancel(): void {
    // Transports may also report the end of a call after a normal answer.
    if (!this.isAnswered) super.cancel();
  }

  answer(outcome: DecisionOutcome): void {
    this.#endSpan(outcome);
    if (outcome.ok) {
      const encoded = encodeRateLimitResponse(outcome.response);
      if (this.#isFirst()) this.#call.succeed(encoded.bytes, encoded.length);
      return;
    }
    const { message } = outcome.error;
    if (this.#way.log.isDebug) this.#way.log.debug(`caught error during call: ${message}`);
    if (this.#isLate()) this.fail(grpcStatus.deadlineExceeded, lateText);
    else this.fail(grpcStatus.unknown, message);
  }

  fail(status: GrpcErrorStatus, text: string): void {
    if (this.#isFirst()) this.#call.fail(status, text);
  }

  /** Measures the time until the answer; false if it was already answered. */
  #isFirst(): boolean {
    if (this.isAnswered) return false;
    this.isAnswered = true;
    const ms = this.#way.clock.monotonicMs() - this.receivedMs;
    this.#way.responseTime.observe(Math.trunc(ms));
    this.#way.duration.observe(ms / 1000);
    return true;
  }

  #isLate(): boolean {
    const { deadlineMs } = this.#call;
    return deadlineMs !== undefined && this.#way.clock.monotonicMs() >= deadlineMs;
  }

  #endSpan(outcome: DecisionOutcome): void {
    const { tracing } = this.#way;
    if (tracing === undefined || this.#span === undefined) return;
    this.#span.set(tracing.description.toStatus(outcome.ok ? 'OK' : 'UNKNOWN'));
    this.#span.end(outcome.ok ? undefined : outcome.error.message);
  }
}

function startSpan({ tracer, description }: RpcTracing, call: UnaryCall): ServerSpan | undefined {
  const span = tracer.startServerSpan(scope, description.name, (name) => call.header(name));
  span?.set({ ...description.method, ...description.toPeer(call.peer()) });
  return span;
}
