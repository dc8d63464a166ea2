// Loads the discovery interfaces of proto/ and gives them types, for the control plane that serves them and the worker
// that follows them.
import type { MethodDefinition } from '@grpc/proto-loader';
import { loadSync } from '@grpc/proto-loader';
import { ownPath } from '../own-files.ts';
import type {
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from './discovery-messages.ts';

type Method<Request, Response> = MethodDefinition<Request, Response, Request, Response>;
type SotwMethod = Method<DiscoveryRequestMessage, DiscoveryResponseMessage>;
type DeltaMethod = Method<DeltaDiscoveryRequestMessage, DeltaDiscoveryResponseMessage>;

/** The resource type of both programs. */
export const rateLimitConfigTypeUrl =
  'type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig';

// Types, not interfaces: grpc-js accepts only types with an implied index signature.
export type AggregatedDiscoveryDefinition = {
  readonly StreamAggregatedResources: SotwMethod;
  readonly DeltaAggregatedResources: DeltaMethod;
};

export type RateLimitConfigDiscoveryDefinition = {
  readonly StreamRlsConfigs: SotwMethod;
};

/**
 * Messages are plain objects: camelCase names, every field present. `requestDeserialize` and
 * `responseDeserialize` throw on bytes that are not the message.
 */
export interface DiscoveryProtos {
  readonly aggregated: AggregatedDiscoveryDefinition;
  readonly rateLimitConfig: RateLimitConfigDiscoveryDefinition;
}

const files = [
  'envoy/service/discovery/v3/ads.proto',
  'ratelimit/service/ratelimit/v3/rls_conf_ds.proto',
];

/** Reads the files of proto/, which takes some milliseconds: call it once per process, in the composition root. */
export function loadDiscoveryProtos(): DiscoveryProtos {
  const definition = loadSync(files, {
    includeDirs: [ownPath('proto')],
    longs: String,
    defaults: true,
    oneofs: true,
  });
  return {
    aggregated: definition[
      'envoy.service.discovery.v3.AggregatedDiscoveryService'
    ] as unknown as AggregatedDiscoveryDefinition,
    rateLimitConfig: definition[
      'ratelimit.service.ratelimit.v3.RateLimitConfigDiscoveryService'
    ] as unknown as RateLimitConfigDiscoveryDefinition,
  };
}
