// Loads the interfaces of proto/ and gives them types.
import { loadSync, type MessageTypeDefinition, type MethodDefinition } from '@grpc/proto-loader';
import { ownPath } from '../own-files.ts';
import type {
  HealthCheckRequestMessage,
  HealthCheckResponseMessage,
  HealthListResponseMessage,
} from './health-messages.ts';
import type { RateLimitConfigMessage } from './rate-limit-config-message.ts';
import type { RateLimitRequestMessage, RateLimitResponseMessage } from './rate-limit-messages.ts';

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

/**
 * Messages are plain objects: camelCase names, 64-bit integers as decimal strings, enums as
 * numbers, every field present. `deserialize` throws on bytes that are not the message.
 */
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

const includeDirs = [ownPath('proto')];

/** Reads the files of proto/, which takes some milliseconds: call it once per process, in the composition root. */
export function loadProtos(): Protos {
  const definition = loadSync(protoFiles, {
    includeDirs,
    longs: String,
    defaults: true,
    oneofs: true,
  });
  return {
    rateLimitService: definition[
      'envoy.service.ratelimit.v3.RateLimitService'
    ] as unknown as RateLimitServiceDefinition,
    healthService: definition['grpc.health.v1.Health'] as unknown as HealthServiceDefinition,
    reflectionService: definition[
      'grpc.reflection.v1.ServerReflection'
    ] as unknown as ReflectionServiceDefinition,
    rateLimitConfig: definition[
      'ratelimit.config.ratelimit.v3.RateLimitConfig'
    ] as unknown as MessageTypeDefinition<RateLimitConfigMessage, RateLimitConfigMessage>,
  };
}
