// The differences between the two protocols for a stream, except those of their sessions; and the node, which both send
// alike.
import { type DiscoveryProtos, rateLimitConfigTypeUrl } from '../../../shared/wire/discovery.ts';
import type {
  DeltaDiscoveryRequestMessage,
  DiscoveryRequestMessage,
  NodeMessage,
} from '../../../shared/wire/discovery-messages.ts';
import type { StructMessage, ValueMessage } from '../../../shared/wire/struct-message.ts';
import { type NodeIdentity, toContentVersion } from '../snapshot/snapshot.ts';
import { DeltaSession, toKnown } from './delta-session.ts';
import { maxNodeLength } from './limits.ts';
import type { Session } from './session.ts';
import { SotwSession } from './sotw-session.ts';

export type DiscoveryMode = 'sotw' | 'delta';

export interface DiscoveryProtocol<Request> {
  readonly mode: DiscoveryMode;
  /** Throws on bytes that are not such a message. */
  decode(bytes: Buffer): Request;
  createSession(): Session<Request>;
  /** The version of what the client has, by the first request of a stream; undefined if it has nothing. */
  versionIn(request: Request): string | undefined;
  /** The names and versions in a request that are retained. */
  namesIn(request: Request): readonly string[];
  /** The type of a request that names none; undefined where a type is required. */
  readonly impliedTypeUrl: string | undefined;
}

export interface AnyDiscoveryRequest {
  readonly node?: NodeMessage | null;
  readonly typeUrl?: string;
}

export type SotwProtocol = DiscoveryProtocol<DiscoveryRequestMessage>;
export type DeltaProtocol = DiscoveryProtocol<DeltaDiscoveryRequestMessage>;

export interface DiscoveryProtocols {
  readonly aggregatedSotw: SotwProtocol;
  readonly aggregatedDelta: DeltaProtocol;
  readonly dedicatedSotw: SotwProtocol;
}

export function createProtocols({ aggregated }: DiscoveryProtos): DiscoveryProtocols {
  const aggregatedSotw: SotwProtocol = {
    mode: 'sotw',
    decode: aggregated.StreamAggregatedResources.requestDeserialize,
    createSession: () => new SotwSession(),
    versionIn: ({ versionInfo }) => versionInfo || undefined,
    namesIn: ({ resourceNames = [], versionInfo = '' }) => [...resourceNames, versionInfo],
    impliedTypeUrl: undefined,
  };
  return {
    aggregatedSotw,
    aggregatedDelta: {
      mode: 'delta',
      decode: aggregated.DeltaAggregatedResources.requestDeserialize,
      createSession: () => new DeltaSession(),
      versionIn(request) {
        const known = toKnown(request);
        return known.length === 0 ? undefined : toContentVersion(known);
      },
      namesIn: ({ resourceNamesSubscribe = [], initialResourceVersions }) => [
        ...resourceNamesSubscribe,
        ...Object.entries(initialResourceVersions ?? {}).flat(),
      ],
      impliedTypeUrl: undefined,
    },
    dedicatedSotw: { ...aggregatedSotw, impliedTypeUrl: rateLimitConfigTypeUrl },
  };
}

/** Undefined when the message exceeds the limit of a stream. */
export function toNodeIdentity(node: NodeMessage | null | undefined): NodeIdentity | undefined {
  const { id = '', cluster = '' } = node ?? {};
  const metadata = toTexts(node?.metadata);
  let length = id.length + cluster.length;
  for (const [name, text] of metadata) length += name.length + text.length;
  return length > maxNodeLength ? undefined : { id, cluster, metadata };
}

function toTexts(struct: StructMessage | null | undefined): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  for (const [name, value] of Object.entries(struct?.fields ?? {})) {
    const text = toText(value);
    if (text !== undefined) texts.set(name, text);
  }
  return texts;
}

function toText(value: ValueMessage): string | undefined {
  switch (value.kind) {
    case 'stringValue':
      return value.stringValue;
    case 'numberValue':
      return String(value.numberValue);
    case 'boolValue':
      return String(value.boolValue);
    default:
      return undefined;
  }
}
