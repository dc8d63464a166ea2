// The worker's gRPC port: decisions, health and reflection on one transport.
import type { Clock } from '../../../shared/clock.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { maxRequestBytes, type RequestBounds } from '../../decision/request-bounds.ts';
import type { ShouldRateLimit } from '../../decision/should-rate-limit.ts';
import { Http2Transport } from '../../grpc/http2/http2-transport.ts';
import type { LargeRequests } from '../../grpc/large-requests.ts';
import type { GrpcMethod } from '../../grpc/method.ts';
import type { GrpcTransport, GrpcTransportOptions } from '../../grpc/transport.ts';
import type { Health } from '../../health.ts';
import type { Metrics } from '../../metrics.ts';
import type { LeavingPort } from '../leaving.ts';
import { listeners } from '../listeners.ts';
import {
  createDecisionMethod,
  decisionMethodName,
  decisionMethodPath,
  type RpcTracing,
} from './decision-method.ts';
import { createHealthMethods } from './health-methods.ts';
import { createReflectionMethods } from './reflection-methods.ts';
import { requestCounterName } from './unary-method.ts';

/** Former versions of the protocol. */
const formerServices = [
  'envoy.service.ratelimit.v2.RateLimitService',
  'pb.lyft.ratelimit.RateLimitService',
];

export interface GrpcServerDeps {
  readonly shouldRateLimit: ShouldRateLimit;
  readonly requestBounds?: RequestBounds;
  /** Turns of large requests, shared with the transport. */
  readonly largeRequests?: LargeRequests;
  readonly health: Health;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly clock: Clock;
  /** Undefined if no spans are made. */
  readonly tracing?: RpcTracing | undefined;
  /** Methods of other services on the same port. */
  readonly furtherMethods?: readonly [path: string, method: GrpcMethod][];
}

export type GrpcServer = GrpcTransport & LeavingPort;

export type GrpcServerOptions = Omit<GrpcTransportOptions, 'names' | 'maxRequestBytes'>;

export function createGrpcServer(deps: GrpcServerDeps, options: GrpcServerOptions): GrpcServer {
  const { log, clock, metrics, largeRequests } = deps;
  const methods = new Map<string, GrpcMethod>([
    [decisionMethodPath, createDecisionMethod(deps)],
    ...createHealthMethods(deps),
    ...createReflectionMethods(),
    ...createFormerMethods(deps),
    ...(deps.furtherMethods ?? []),
  ]);
  const refused = metrics.counter('ratelimit.grpc.cx_refused');
  const onRefused = () => refused.add(1);
  const transport = new Http2Transport(
    { methods, log, clock, onRefused, largeRequests, storesHeaders: deps.tracing !== undefined },
    { names: listeners.gRPC, maxRequestBytes, ...options },
  );
  const decisions = metrics.counter(requestCounterName(decisionMethodName));

  return {
    stop: (graceMs) => transport.stop(graceMs),
    turnAway: () => transport.turnAway(),
    replaceCertificates: (certificates) => transport.replaceCertificates(certificates),
    get asked() {
      return decisions.value;
    },
    async start() {
      const address = await transport.start();
      log.notice(`Listening for gRPC on '${address.text}'`);
      return address;
    },
  };
}

/**
 * Methods of former versions: refuse each call with the reason and log it, because a proxy without an answer admits
 * everything.
 */
function createFormerMethods({
  log,
  clock,
}: Pick<GrpcServerDeps, 'log' | 'clock'>): [path: string, method: GrpcMethod][] {
  const repeatedLog = createRepeatedLog({ clock, write: log.warning, again: 'in-time' });
  return formerServices.map((service) => {
    const text = `unknown service ${service}`;
    return [
      `/${service}/ShouldRateLimit`,
      {
        kind: 'unary',
        answer(_bytes, _start, _end, call) {
          repeatedLog.report(
            `${text}: a caller uses an older version of the protocol; ` +
              "set 'transport_api_version: V3' in its rate limit filter",
            service,
          );
          call.fail(grpcStatus.unimplemented, text);
          return undefined;
        },
      },
    ];
  });
}
