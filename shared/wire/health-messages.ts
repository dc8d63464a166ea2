// Messages of grpc.health.v1 as plain objects.

export interface HealthCheckRequestMessage {
  readonly service?: string;
}

export interface HealthCheckResponseMessage {
  /** A number of `servingStatuses`. */
  readonly status?: number;
}

export interface HealthListResponseMessage {
  readonly statuses?: { readonly [service: string]: HealthCheckResponseMessage };
}

export const servingStatuses = {
  unknown: 0,
  serving: 1,
  notServing: 2,
  serviceUnknown: 3,
} as const;
