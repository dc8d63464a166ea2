// Parts of an Envoy configuration for tests: listeners with rate limits, clusters of workers and of protected services.
// In JSON, which Envoy accepts as YAML. Operators should copy compose/envoy/envoy.yaml; this is for features that are
// not in that sample.

export type Json = string | number | boolean | readonly Json[] | { readonly [name: string]: Json };
export type JsonObject = { readonly [name: string]: Json };

const types = 'type.googleapis.com/envoy';

/** An extension with its configuration; `type` is the part after `type.googleapis.com/envoy.`. */
export function toExtension(name: string, type: string, fields: JsonObject = {}): JsonObject {
  return { name, typed_config: { '@type': `${types}.${type}`, ...fields } };
}

export interface ListenerOptions {
  readonly port: number;
  /** Fields of the rate limit filter, in addition to domain `envoy` and the cluster `workers`. */
  readonly rateLimit: JsonObject;
  /** Routes to the cluster `upstream`, each with the prefix of its path. */
  readonly routes: readonly RouteOptions[];
  /** Filters before the rate limit filter. */
  readonly filters?: readonly JsonObject[];
  /** Fields of the connection manager, which override the defaults. */
  readonly manager?: JsonObject;
}

export interface RouteOptions {
  readonly path: string;
  /** The descriptors of a request: one `envoy.config.route.v3.RateLimit` each. */
  readonly rateLimits: readonly JsonObject[];
  /** Further fields of the route. */
  readonly fields?: JsonObject;
}

export function toListener({
  port,
  rateLimit,
  routes,
  filters = [],
  manager: managerFields = {},
}: ListenerOptions): JsonObject {
  const rateLimitFilter = toExtension(
    'envoy.filters.http.ratelimit',
    'extensions.filters.http.ratelimit.v3.RateLimit',
    {
      domain: 'envoy',
      // Generous: a busy machine must not be mistaken for an unreachable worker.
      timeout: '10s',
      failure_mode_deny: true,
      rate_limit_service: {
        transport_api_version: 'V3',
        grpc_service: { envoy_grpc: { cluster_name: 'workers' } },
      },
      ...rateLimit,
    },
  );
  const manager = toExtension(
    'envoy.filters.network.http_connection_manager',
    'extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
    {
      stat_prefix: `port_${port}`,
      use_remote_address: false,
      ...managerFields,
      route_config: {
        virtual_hosts: [
          {
            name: 'all',
            domains: ['*'],
            routes: routes.map(({ path, rateLimits, fields }) => ({
              match: { prefix: path },
              route: { cluster: 'upstream', rate_limits: rateLimits },
              ...fields,
            })),
          },
        ],
      },
      http_filters: [
        ...filters,
        rateLimitFilter,
        toExtension('envoy.filters.http.router', 'extensions.filters.http.router.v3.Router'),
      ],
    },
  );
  return {
    name: `port_${port}`,
    address: toAddress(port),
    filter_chains: [{ filters: [manager] }],
  };
}

/** A cluster of servers on the loopback; `fields` override the default ones. */
export function toCluster(
  name: string,
  ports: readonly number[],
  fields: JsonObject = {},
): JsonObject {
  return {
    name,
    type: 'STATIC',
    connect_timeout: '5s',
    load_assignment: {
      cluster_name: name,
      endpoints: [
        { lb_endpoints: ports.map((port) => ({ endpoint: { address: toAddress(port) } })) },
      ],
    },
    ...fields,
  };
}

/** The fields of a cluster that uses gRPC. */
export const http2Fields: JsonObject = {
  typed_extension_protocol_options: {
    'envoy.extensions.upstreams.http.v3.HttpProtocolOptions': {
      '@type': `${types}.extensions.upstreams.http.v3.HttpProtocolOptions`,
      explicit_http_config: { http2_protocol_options: {} },
    },
  },
};

export function toEnvoyConfig(
  listeners: readonly JsonObject[],
  clusters: readonly JsonObject[],
): string {
  return JSON.stringify({
    node: { id: 'test', cluster: 'edge' },
    static_resources: { listeners, clusters },
  });
}

function toAddress(port: number): JsonObject {
  return { socket_address: { address: '127.0.0.1', port_value: port } };
}
