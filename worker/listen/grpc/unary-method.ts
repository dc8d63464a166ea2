// Unary methods other than the decision: decoding, statistics, and an answer even when the handler fails.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import type { Log } from '../../../shared/log.ts';
import type { UnaryCall, UnaryMethod } from '../../grpc/method.ts';
import type { Counter, Metrics, Timer } from '../../metrics.ts';
import type { Decoded } from './request-decoder.ts';

export interface UnaryMethodDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

export interface UnaryMethodParts<Request> {
  /** The last part of the path, used in the names of the statistics. */
  readonly name: string;
  readonly decode: (bytes: Buffer, start: number, end: number) => Decoded<Request>;
  /** Answers the call before it returns, or throws. */
  readonly handle: (request: Request, call: UnaryCall) => void;
}

/** The counter of a method's requests, by the last part of its path. */
export function requestCounterName(name: string): string {
  return `ratelimit_server.${name}.total_requests`;
}

/** Statistics named `ratelimit_server.<name>` (behaviour: statistic-names); undecodable requests are not counted. */
export function unaryStatistics(
  metrics: Metrics,
  name: string,
): { readonly totalRequests: Counter; readonly responseTime: Timer } {
  return {
    totalRequests: metrics.counter(requestCounterName(name)),
    responseTime: metrics.timer(`ratelimit_server.${name}.response_time`),
  };
}

export function refuseUndecodable(
  call: UnaryCall,
  { problem, isTooLarge }: Decoded<unknown> & { readonly ok: false },
): void {
  if (isTooLarge) call.fail(grpcStatus.resourceExhausted, problem);
  else call.fail(grpcStatus.internal, `grpc: error unmarshalling request: ${problem}`);
}

export function createUnaryMethod<Request>(
  { metrics, clock, log }: UnaryMethodDeps,
  { name, decode, handle }: UnaryMethodParts<Request>,
): UnaryMethod {
  const { totalRequests, responseTime } = unaryStatistics(metrics, name);
  return {
    kind: 'unary',
    answer(bytes, start, end, call) {
      const decoded = decode(bytes, start, end);
      if (!decoded.ok) {
        refuseUndecodable(call, decoded);
        return undefined;
      }
      totalRequests.add(1);
      try {
        handle(decoded.message, call);
      } catch (error) {
        log.error(`defect in ${name}: ${errorText(error)}`);
        call.fail(grpcStatus.internal, 'internal error');
      }
      responseTime.observe(Math.trunc(clock.monotonicMs() - call.receivedMs));
      return undefined;
    },
  };
}
