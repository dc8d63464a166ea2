// The counts of the ADS server, for whoever exports them.

export type DiscoveryMode = 'sotw' | 'delta';

/** Why the server ended a stream, or did not open one. */
export type DropReason =
  | 'unauthenticated'
  | 'too_many_streams'
  | 'too_many_requests'
  | 'too_many_names'
  | 'already_connected'
  | 'bad_request'
  | 'unfinished_request'
  | 'slow_reader';

export interface XdsMetrics {
  /** Gauge: streams open now, by protocol. */
  streams(mode: DiscoveryMode, open: number): void;
  /** Counters. */
  responseSent(mode: DiscoveryMode, bytes: number): void;
  acked(mode: DiscoveryMode): void;
  nacked(mode: DiscoveryMode): void;
  dropped(reason: DropReason): void;
}

export const noMetrics: XdsMetrics = {
  streams() {},
  responseSent() {},
  acked() {},
  nacked() {},
  dropped() {},
};
