// Loads the discovery interfaces of proto/ and gives them types, for the control plane that serves them and the worker
// that follows them.
import type { MethodDefinition } from '@grpc/proto-loader';
import type {
  DeltaDiscoveryRequestMessage,
  DeltaDiscoveryResponseMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from './discovery-messages.ts';
import { loadDefinitions } from './service-definitions.ts';

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

/** `requestDeserialize` and `responseDeserialize` throw on bytes that are not the message. */
export interface DiscoveryProtos {
  readonly aggregated: AggregatedDiscoveryDefinition;
  readonly rateLimitConfig: RateLimitConfigDiscoveryDefinition;
}

const files = [
  'envoy/service/discovery/v3/ads.proto',
  'ratelimit/service/ratelimit/v3/rls_conf_ds.proto',
];

/** Call it once per process, in the composition root. */
export function loadDiscoveryProtos(): DiscoveryProtos {
  const definitions = loadDefinitions(files);
  const byName = <Definition>(name: string) => definitions[name] as Definition;
  return {
    aggregated: byName('envoy.service.discovery.v3.AggregatedDiscoveryService'),
    rateLimitConfig: byName('ratelimit.service.ratelimit.v3.RateLimitConfigDiscoveryService'),
  };
}
