// Loads the interfaces of proto/ and gives them types.
import type { MessageTypeDefinition, MethodDefinition } from '@grpc/proto-loader';
import type {
  HealthCheckRequestMessage,
  HealthCheckResponseMessage,
  HealthListResponseMessage,
} from './health-messages.ts';
import type { RateLimitConfigMessage } from './rate-limit-config-message.ts';
import type { RateLimitRequestMessage, RateLimitResponseMessage } from './rate-limit-messages.ts';
import { loadDefinitions } from './service-definitions.ts';

type Method<Request, Response> = MethodDefinition<Request, Response, Request, Response>;

// A type, not an interface: grpc-js accepts only types with an implied index signature.
export type RateLimitServiceDefinition = {
  readonly ShouldRateLimit: Method<RateLimitRequestMessage, RateLimitResponseMessage>;
};

export type HealthServiceDefinition = {
  readonly Check: Method<HealthCheckRequestMessage, HealthCheckResponseMessage>;
  readonly Watch: Method<HealthCheckRequestMessage, HealthCheckResponseMessage>;
  readonly List: Method<object, HealthListResponseMessage>;
};

export type ReflectionServiceDefinition = {
  readonly ServerReflectionInfo: Method<object, object>;
};

/** `deserialize` throws on bytes that are not the message. */
export interface Protos {
  readonly rateLimitService: RateLimitServiceDefinition;
  readonly healthService: HealthServiceDefinition;
  readonly reflectionService: ReflectionServiceDefinition;
  readonly rateLimitConfig: MessageTypeDefinition<RateLimitConfigMessage, RateLimitConfigMessage>;
}

/** The interfaces that a worker serves or reads. */
export const protoFiles = [
  'envoy/service/rate_limit_quota/v3/rlqs.proto',
  'envoy/service/ratelimit/v3/rls.proto',
  'grpc/health/v1/health.proto',
  'grpc/reflection/v1/reflection.proto',
  'ratelimit/config/ratelimit/v3/rls_conf.proto',
];

/** Call it once per process, in the composition root. */
export function loadProtos(): Protos {
  const definitions = loadDefinitions(protoFiles);
  const byName = <Definition>(name: string) => definitions[name] as Definition;
  return {
    rateLimitService: byName('envoy.service.ratelimit.v3.RateLimitService'),
    healthService: byName('grpc.health.v1.Health'),
    reflectionService: byName('grpc.reflection.v1.ServerReflection'),
    rateLimitConfig: byName('ratelimit.config.ratelimit.v3.RateLimitConfig'),
  };
}
