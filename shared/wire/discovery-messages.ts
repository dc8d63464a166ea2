// The messages of envoy.service.discovery.v3 and those they contain, as plain objects.
import type { StructMessage } from './struct-message.ts';

export interface DiscoveryRequestMessage {
  readonly versionInfo?: string;
  readonly node?: NodeMessage | null;
  readonly resourceNames?: readonly string[];
  readonly typeUrl?: string;
  readonly responseNonce?: string;
  readonly errorDetail?: StatusMessage | null;
}

export interface DiscoveryResponseMessage {
  readonly versionInfo?: string;
  readonly resources?: readonly AnyMessage[];
  readonly typeUrl?: string;
  readonly nonce?: string;
}

export interface DeltaDiscoveryRequestMessage {
  readonly node?: NodeMessage | null;
  readonly typeUrl?: string;
  readonly resourceNamesSubscribe?: readonly string[];
  readonly resourceNamesUnsubscribe?: readonly string[];
  readonly initialResourceVersions?: { readonly [name: string]: string };
  readonly responseNonce?: string;
  readonly errorDetail?: StatusMessage | null;
}

export interface DeltaDiscoveryResponseMessage {
  readonly systemVersionInfo?: string;
  readonly resources?: readonly DeltaResourceMessage[];
  readonly typeUrl?: string;
  readonly nonce?: string;
  readonly removedResources?: readonly string[];
}

export interface DeltaResourceMessage {
  readonly version?: string;
  readonly resource?: AnyMessage | null;
  readonly name?: string;
}

export interface NodeMessage {
  readonly id?: string;
  readonly cluster?: string;
  readonly metadata?: StructMessage | null;
  readonly locality?: {
    readonly region?: string;
    readonly zone?: string;
    readonly subZone?: string;
  } | null;
  readonly userAgentName?: string;
  readonly userAgentVersion?: string;
}

export interface StatusMessage {
  readonly code?: number;
  readonly message?: string;
}

export interface AnyMessage {
  /** The only name that is not in camelCase: the protobuf library defines this message itself. */
  readonly type_url?: string;
  readonly value?: Buffer;
}
