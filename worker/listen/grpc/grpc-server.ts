// The worker's gRPC port: decisions, health and reflection on one transport.
import type { Clock } from '../../../shared/clock.ts';
import { createHttp2Transport } from '../../../shared/grpc/http2/http2-transport.ts';
import type { LargeRequests } from '../../../shared/grpc/large-requests.ts';
import type { GrpcMethod } from '../../../shared/grpc/method.ts';
import type { GrpcTransport, GrpcTransportOptions } from '../../../shared/grpc/transport.ts';
import type { Log } from '../../../shared/log.ts';
import { maxRequestBytes, type RequestBounds } from '../../decision/request-bounds.ts';
import type { ShouldRateLimit } from '../../decision/should-rate-limit.ts';
import type { Health } from '../../health.ts';
import type { Metrics } from '../../metrics.ts';
import { listeners } from '../listeners.ts';
import {
  createDecisionMethod,
  decisionMethodName,
  decisionMethodPath,
  type RpcTracing,
} from './decision-method.ts';
import { createFormerMethods } from './former-methods.ts';
import { createHealthMethods } from './health-methods.ts';
import { createReflectionMethods } from './reflection-methods.ts';
import { requestCounterName } from './unary-method.ts';

export interface GrpcServerDeps {
  readonly shouldRateLimit: ShouldRateLimit;
  readonly requestBounds?: RequestBounds;
  /** As for the transport. */
  readonly largeRequests?: LargeRequests;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  /** Undefined: no spans are made. */
  readonly tracing?: RpcTracing | undefined;
}

export interface GrpcServer extends GrpcTransport {
  /** Keeps serving, with answers that tell proxies to ask others, until requests for decisions stop, but no
   * longer than `limitMs`. Call it before `stop`. */
  letCallersLeave(limitMs: number): Promise<void>;
}

export type GrpcServerOptions = Omit<GrpcTransportOptions, 'names' | 'maxRequestBytes'>;

/** A caller with longer pauses may have missed it. */
const quietMs = 250;

export function createGrpcServer(deps: GrpcServerDeps, options: GrpcServerOptions): GrpcServer {
  const { log, clock, metrics, largeRequests } = deps;
  const methods = new Map<string, GrpcMethod>([
    [decisionMethodPath, createDecisionMethod(deps)],
    ...createHealthMethods(deps),
    ...createReflectionMethods(),
    ...createFormerMethods(deps),
  ]);
  const refused = metrics.counter('ratelimit.grpc.cx_refused');
  const onRefused = () => refused.add(1);
  const transport = createHttp2Transport(
    { methods, log, clock, onRefused, largeRequests, keepsHeaders: deps.tracing !== undefined },
    { names: listeners.gRPC, maxRequestBytes, ...options },
  );
  const decisions = metrics.counter(requestCounterName(decisionMethodName));

  return {
    ...transport,
    async letCallersLeave(limitMs) {
      if (!transport.turnAway()) return;
      const endMs = clock.monotonicMs() + limitMs;
      let seen: number;
      do {
        seen = decisions.value;
        await new Promise<void>((resolve) => clock.after(quietMs, resolve));
      } while (decisions.value > seen && clock.monotonicMs() < endMs);
    },
    async start() {
      const address = await transport.start();
      log.notice(`Listening for gRPC on '${address.text}'`);
      return address;
    },
  };
}
