// Messages of envoy.service.ratelimit.v3 as plain objects, for clients and tests. The worker itself
// reads and writes them with codecs of its own (worker/listen/grpc).
import type { StructMessage } from './struct-message.ts';

export interface RateLimitRequestMessage {
  readonly domain?: string;
  readonly descriptors?: readonly {
    readonly entries?: readonly { readonly key?: string; readonly value?: string }[];
    readonly limit?: { readonly requestsPerUnit?: number; readonly unit?: number } | null;
    readonly hitsAddend?: { readonly value?: string | number } | null;
    readonly isNegativeHits?: boolean;
  }[];
  readonly hitsAddend?: number;
}

export interface HeaderValueMessage {
  readonly key?: string;
  readonly value?: string;
}

export interface DescriptorStatusMessage {
  /** 1 OK, 2 OVER_LIMIT. */
  readonly code?: number;
  readonly currentLimit?: {
    readonly name?: string;
    readonly requestsPerUnit?: number;
    readonly unit?: number;
  } | null;
  readonly limitRemaining?: number;
  readonly durationUntilReset?: {
    readonly seconds?: string | number;
    readonly nanos?: number;
  } | null;
}

export interface RateLimitResponseMessage {
  readonly overallCode?: number;
  readonly statuses?: readonly DescriptorStatusMessage[];
  readonly responseHeadersToAdd?: readonly HeaderValueMessage[];
  readonly requestHeadersToAdd?: readonly HeaderValueMessage[];
  readonly dynamicMetadata?: StructMessage | null;
}
