// The worker's listeners, and the settings of their addresses.
export const listeners = {
  HTTP: { listener: 'HTTP', host: 'HOST', port: 'PORT', path: '' },
  gRPC: {
    listener: 'gRPC',
    host: 'GRPC_HOST',
    port: 'GRPC_PORT',
    path: 'GRPC_UDS',
    maxConnections: 'GRPC_MAX_CONNECTIONS',
  },
  debug: { listener: 'debug', host: 'DEBUG_HOST', port: 'DEBUG_PORT', path: '' },
  metrics: {
    listener: 'metrics',
    host: 'PULLMETRICS_ADDR',
    port: 'PULLMETRICS_ADDR',
    path: '',
  },
} as const;

export type ListenerName = keyof typeof listeners;
