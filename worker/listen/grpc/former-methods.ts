// The paths of former versions of the protocol. Calls to them are refused with the reason and logged,
// because a proxy without an answer lets everything pass.
import type { Clock } from '../../../shared/clock.ts';
import type { GrpcMethod } from '../../../shared/grpc/method.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import type { Log } from '../../../shared/log.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';

const services = [
  'envoy.service.ratelimit.v2.RateLimitService',
  'pb.lyft.ratelimit.RateLimitService',
];

export function createFormerMethods({
  log,
  clock,
}: {
  readonly log: Log;
  readonly clock: Clock;
}): [path: string, method: GrpcMethod][] {
  const repeatedLog = createRepeatedLog({ clock, write: log.warning, again: 'in-time' });
  return services.map((service) => {
    const text = `unknown service ${service}`;
    return [
      `/${service}/ShouldRateLimit`,
      {
        kind: 'unary',
        answer(_bytes, _start, _end, call) {
          repeatedLog.report(
            `${text}: a caller speaks a former version of the protocol; ` +
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
