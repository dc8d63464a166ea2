// How gateways deploy a rate limit service: the containers of Envoy Gateway, of the samples of Istio and
// of Contour, and of a fleet that is configured by files behind Emissary, which deploys none itself.

export interface GatewayDeployment {
  readonly gateway: string;
  readonly command: readonly string[];
  /** As it stands there; names of hosts and folders are those of a cluster. */
  readonly environment: Readonly<Record<string, string>>;
  /** Folders that are mounted, by what is in them. All are read-only. */
  readonly mounts: Readonly<Record<string, 'certificates' | 'rules' | 'metrics mapping'>>;
}

const command = ['/bin/ratelimit'];

const filesInData = {
  REDIS_SOCKET_TYPE: 'tcp',
  RUNTIME_ROOT: '/data',
  RUNTIME_SUBDIRECTORY: 'ratelimit',
  RUNTIME_WATCH_ROOT: 'false',
  RUNTIME_IGNOREDOTFILES: 'true',
  USE_STATSD: 'false',
  LOG_LEVEL: 'debug',
} as const;

export const gatewayDeployments: readonly GatewayDeployment[] = [
  {
    gateway: 'Envoy Gateway',
    command,
    environment: {
      RUNTIME_ROOT: '/data',
      RUNTIME_SUBDIRECTORY: 'ratelimit',
      RUNTIME_IGNOREDOTFILES: 'true',
      RUNTIME_WATCH_ROOT: 'false',
      LOG_LEVEL: 'info',
      USE_STATSD: 'false',
      CONFIG_TYPE: 'GRPC_XDS_SOTW',
      CONFIG_GRPC_XDS_SERVER_URL: 'envoy-gateway:18001',
      CONFIG_GRPC_XDS_NODE_ID: 'envoy-ratelimit',
      GRPC_SERVER_USE_TLS: 'true',
      GRPC_SERVER_TLS_CERT: '/certs/tls.crt',
      GRPC_SERVER_TLS_KEY: '/certs/tls.key',
      GRPC_SERVER_TLS_CA_CERT: '/certs/ca.crt',
      CONFIG_GRPC_XDS_SERVER_USE_TLS: 'true',
      CONFIG_GRPC_XDS_CLIENT_TLS_CERT: '/certs/tls.crt',
      CONFIG_GRPC_XDS_CLIENT_TLS_KEY: '/certs/tls.key',
      CONFIG_GRPC_XDS_SERVER_TLS_CACERT: '/certs/ca.crt',
      FORCE_START_WITHOUT_INITIAL_CONFIG: 'true',
      REDIS_SOCKET_TYPE: 'tcp',
      REDIS_URL: 'redis.redis.svc:6379',
      USE_PROMETHEUS: 'true',
      PROMETHEUS_ADDR: ':19001',
      PROMETHEUS_MAPPER_YAML: '/etc/statsd-exporter/conf.yaml',
    },
    mounts: { '/certs': 'certificates', '/etc/statsd-exporter': 'metrics mapping' },
  },
  {
    gateway: "Istio's sample",
    command,
    environment: { ...filesInData, REDIS_URL: 'redis:6379', HOST: '::', GRPC_HOST: '::' },
    mounts: { '/data/ratelimit/config': 'rules' },
  },
  {
    gateway: "Contour's example",
    command,
    environment: { ...filesInData, REDIS_URL: 'localhost:6379' },
    mounts: { '/data/ratelimit/config': 'rules' },
  },
  {
    gateway: 'a deployment behind Emissary',
    command,
    environment: { ...filesInData, REDIS_URL: 'redis.default.svc.cluster.local:6379' },
    mounts: { '/data/ratelimit/config': 'rules' },
  },
];
