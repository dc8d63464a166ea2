// Messages of ratelimit.config.ratelimit.v3 as plain objects.
import type { StructMessage } from './struct-message.ts';

export interface RateLimitConfigMessage {
  readonly name?: string;
  readonly domain?: string;
  readonly descriptors?: readonly ConfigDescriptorMessage[];
}

export interface ConfigDescriptorMessage {
  readonly key?: string;
  readonly value?: string;
  readonly rateLimit?: RateLimitPolicyMessage | null;
  readonly descriptors?: readonly ConfigDescriptorMessage[];
  readonly shadowMode?: boolean;
  readonly detailedMetric?: boolean;
  readonly quotaMode?: boolean;
  readonly metadata?: StructMessage | null;
}

export interface RateLimitPolicyMessage {
  /** A number of RateLimitUnit (shared/rules/unit.ts). */
  readonly unit?: number;
  readonly requestsPerUnit?: number;
  readonly unlimited?: boolean;
  readonly name?: string;
  readonly replaces?: readonly { readonly name?: string }[];
}
