// A unary method with everything that is the same for each: decoding, statistics, and an answer even
// when its handler fails.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { Metrics } from '../../metrics/metric.ts';
import { type GrpcAnswer, grpcStatus, type UnaryCaller, type UnaryMethod } from './method.ts';
import type { Decoded } from './request-decoder.ts';

export interface UnaryMethodDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

export interface UnaryMethodParts<Request> {
  /** The last part of the path, under which calls are counted. */
  readonly name: string;
  readonly needsCaller?: boolean;
  readonly decode: (bytes: Buffer) => Decoded<Request>;
  readonly handle: (
    request: Request,
    timeoutMs: number | undefined,
    reply: (answer: GrpcAnswer) => void,
    caller: UnaryCaller | undefined,
  ) => () => void;
}

/** Counted as `ratelimit_server.<name>` (reference-behaviour 6.1); undecodable requests are not. */
export function createUnaryMethod<Request>(
  { metrics, clock, log }: UnaryMethodDeps,
  { name, needsCaller = false, decode, handle }: UnaryMethodParts<Request>,
): UnaryMethod {
  const totalRequests = metrics.counter(`ratelimit_server.${name}.total_requests`);
  const responseTime = metrics.timer(`ratelimit_server.${name}.response_time`);
  return {
    kind: 'unary',
    needsCaller,
    answer(bytes, timeoutMs, reply, caller) {
      const decoded = decode(bytes);
      if (!decoded.ok) {
        const text = `grpc: error unmarshalling request: ${decoded.problem}`;
        reply({ ok: false, status: grpcStatus.internal, text });
        return noCancel;
      }
      totalRequests.add(1);
      const startMs = clock.monotonicMs();
      let isAnswered = false;
      const replyOnce = (answer: GrpcAnswer) => {
        if (isAnswered) return;
        isAnswered = true;
        responseTime.observe(Math.trunc(clock.monotonicMs() - startMs));
        reply(answer);
      };
      try {
        const cancel = handle(decoded.message, timeoutMs, replyOnce, caller);
        // Transports say that the call is over also after a normal end.
        return () => {
          if (!isAnswered) cancel();
        };
      } catch (error) {
        log.error(`defect in ${name}: ${errorText(error)}`);
        replyOnce({ ok: false, status: grpcStatus.internal, text: 'internal error' });
        return noCancel;
      }
    },
  };
}

function noCancel(): void {}
