// The worker's gRPC port: decisions, health and reflection on one transport.
import type { Clock } from '../../../shared/clock.ts';
import type { Log } from '../../../shared/log.ts';
import type { Protos } from '../../../shared/wire/protos.ts';
import type { ShouldRateLimit } from '../../decision/should-rate-limit.ts';
import type { Health } from '../../health.ts';
import type { Metrics } from '../../metrics/metric.ts';
import { createDecisionMethod, type RpcTracing } from './decision-method.ts';
import { createFormerMethods } from './former-methods.ts';
import { createHealthMethods } from './health-methods.ts';
import type { GrpcMethod } from './method.ts';
import { createReflectionMethods } from './reflection-methods.ts';
import type { CreateGrpcTransport, GrpcTransport, GrpcTransportOptions } from './transport.ts';

export interface GrpcServerDeps {
  readonly shouldRateLimit: ShouldRateLimit;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  readonly protos: Protos;
  readonly createTransport: CreateGrpcTransport;
  /** Undefined: no spans are made. */
  readonly tracing?: RpcTracing | undefined;
}

export function createGrpcServer(
  deps: GrpcServerDeps,
  options: GrpcTransportOptions,
): GrpcTransport {
  const { log, clock, protos } = deps;
  const methods = new Map<string, GrpcMethod>([
    [protos.rateLimitService.ShouldRateLimit.path, createDecisionMethod(deps)],
    ...createHealthMethods({ ...deps, service: protos.healthService }),
    ...createReflectionMethods(protos.describe),
    ...createFormerMethods(deps),
  ]);
  const refused = deps.metrics.counter('ratelimit.grpc.cx_refused');
  const onRefused = () => refused.add(1);
  const transport = deps.createTransport({ methods, log, clock, onRefused }, options);
  return {
    ...transport,
    async start() {
      const address = await transport.start();
      log.warning(`Listening for gRPC on '${address.text}'`);
      return address;
    },
  };
}
