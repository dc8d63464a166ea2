// A decision's request and response as plain values. worker/listen converts them from and to protobuf and JSON; the
// fields have the meaning of envoy.service.ratelimit.v3.
import type { Entry, JsonObject } from '../../shared/rules/rule.ts';
import type { Unit } from '../../shared/rules/unit.ts';

export interface RequestDescriptor {
  readonly entries: readonly Entry[];
  /** `hashEntries` of the entries (hit.ts), if the port has computed it. */
  readonly hash?: number;
  /** A limit in the request itself; `unit` is the raw wire number. */
  readonly limit: { readonly requestsPerUnit: number; readonly unit: number } | undefined;
  /** Hits of this descriptor, 0 for a peek; undefined for the request's number. A bigint only above 2^53. */
  readonly hitsAddend: number | bigint | undefined;
  /** A refund: the hits are subtracted (behaviour: refunds). */
  readonly isNegativeHits: boolean;
}

export interface RateLimitRequest {
  readonly domain: string;
  readonly descriptors: readonly RequestDescriptor[];
  /** 0 counts as 1. */
  readonly hitsAddend: number;
}

/** The numbers are those on the wire. */
export const codes = { ok: 1, overLimit: 2 } as const;
export type Code = (typeof codes)[keyof typeof codes];
/** Their names in protobuf, by number. */
export const codeNames = ['UNKNOWN', 'OK', 'OVER_LIMIT'] as const;

export interface CurrentLimit {
  readonly name: string;
  readonly requestsPerUnit: number;
  readonly unit: Unit;
}

export interface DescriptorStatus {
  readonly code: Code;
  readonly currentLimit: CurrentLimit | undefined;
  readonly limitRemaining: number;
  /** Whole seconds until the end of the window; undefined without a current limit. */
  readonly secondsUntilReset: number | undefined;
}

export interface Header {
  readonly key: string;
  readonly value: string;
}

export interface RateLimitResponse {
  readonly overallCode: Code;
  readonly statuses: readonly DescriptorStatus[];
  readonly responseHeadersToAdd: readonly Header[];
  readonly requestHeadersToAdd: readonly Header[];
  readonly dynamicMetadata: JsonObject | undefined;
}
