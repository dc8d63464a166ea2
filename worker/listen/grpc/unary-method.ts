// The shared part of unary methods: decoding, statistics, and an answer even when the handler fails.
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { PendingAnswer, UnaryCall, UnaryMethod } from '../../../shared/grpc/method.ts';
import { type GrpcErrorStatus, grpcStatus } from '../../../shared/grpc/status.ts';
import type { Log } from '../../../shared/log.ts';
import type { Duration, Metrics, Timer } from '../../metrics.ts';
import type { Decoded } from './request-decoder.ts';

export interface UnaryMethodDeps {
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

export interface UnaryMethodParts<Request> {
  /** The last part of the path, which names the statistics. */
  readonly name: string;
  /** Also called with the unrounded time of each call. */
  readonly duration?: Duration;
  readonly decode: (bytes: Buffer, start: number, end: number) => Decoded<Request>;
  /** As UnaryMethod.answer, but may throw. */
  readonly handle: (request: Request, call: UnaryCall) => PendingAnswer | undefined;
}

/** The counter of a method's requests, by the last part of its path. */
export function requestCounterName(name: string): string {
  return `ratelimit_server.${name}.total_requests`;
}

/** Counted as `ratelimit_server.<name>` (behaviour: statistic-names); undecodable requests are
 * not. */
export function createUnaryMethod<Request>(
  { metrics, clock, log }: UnaryMethodDeps,
  { name, duration, decode, handle }: UnaryMethodParts<Request>,
): UnaryMethod {
  const totalRequests = metrics.counter(requestCounterName(name));
  const responseTime = metrics.timer(`ratelimit_server.${name}.response_time`);
  return {
    kind: 'unary',
    answer(bytes, start, end, call) {
      const decoded = decode(bytes, start, end);
      if (!decoded.ok) {
        if (decoded.isTooLarge) call.fail(grpcStatus.resourceExhausted, decoded.problem);
        else {
          call.fail(grpcStatus.internal, `grpc: error unmarshalling request: ${decoded.problem}`);
        }
        return undefined;
      }
      totalRequests.add(1);
      const counted = new CountedCall(call, clock, responseTime, duration);
      try {
        counted.pending = handle(decoded.message, counted);
      } catch (error) {
        log.error(`defect in ${name}: ${errorText(error)}`);
        counted.fail(grpcStatus.internal, 'internal error');
      }
      return counted.isAnswered ? undefined : counted;
    },
  };
}

/** Answers once, and takes the time until then. */
class CountedCall implements UnaryCall, PendingAnswer {
  readonly #call: UnaryCall;
  readonly #clock: Clock;
  readonly #responseTime: Timer;
  readonly #duration: Duration | undefined;
  readonly receivedMs: number;
  isAnswered = false;
  pending: PendingAnswer | undefined;

  constructor(call: UnaryCall, clock: Clock, responseTime: Timer, duration: Duration | undefined) {
    this.#call = call;
    this.#clock = clock;
    this.#responseTime = responseTime;
    this.#duration = duration;
    this.receivedMs = call.receivedMs;
  }

  get deadlineMs(): number | undefined {
    return this.#call.deadlineMs;
  }

  peer(): string {
    return this.#call.peer();
  }

  header(name: string): string | undefined {
    return this.#call.header(name);
  }

  succeed(message: Uint8Array, length?: number): void {
    if (this.#isFirst()) this.#call.succeed(message, length);
  }

  fail(status: GrpcErrorStatus, text: string): void {
    if (this.#isFirst()) this.#call.fail(status, text);
  }

  cancel(): void {
    // Transports may report the end of a call also after a normal answer.
    if (!this.isAnswered) this.pending?.cancel();
  }

  #isFirst(): boolean {
    if (this.isAnswered) return false;
    this.isAnswered = true;
    const ms = this.#clock.monotonicMs() - this.receivedMs;
    this.#responseTime.observe(Math.trunc(ms));
    this.#duration?.observe(ms / 1000);
    return true;
  }
}
