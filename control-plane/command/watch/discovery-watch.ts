// One stream of the aggregated discovery service, from a client that retains nothing.
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import { loadDiscoveryProtos, rateLimitConfigTypeUrl } from '../../../shared/wire/discovery.ts';
import type {
  AnyMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from '../../../shared/wire/discovery-messages.ts';
import { loadProtos, type Protos } from '../../../shared/wire/protos.ts';
import type { ConfigDescriptorMessage } from '../../../shared/wire/rate-limit-config-message.ts';
import { readTokenFile } from '../../server/token-file.ts';
import { readCredentials } from '../grpc-credentials.ts';
import type { TlsOptions } from '../tls-options.ts';

export interface WatchedResource {
  readonly name: string;
  readonly domain: string;
  readonly rules: number;
  readonly bytes: number;
  /** Why the resource is unreadable. */
  readonly problem?: string;
  /** The message as sent. */
  readonly config?: unknown;
}

export interface WatchedResponse {
  /** Wall time. */
  readonly atMs: number;
  readonly version: string;
  readonly nonce: string;
  readonly resources: readonly WatchedResource[];
  readonly answer: 'ACK' | 'NACK';
}

export interface DiscoveryWatchOptions extends TlsOptions {
  /** `host:port`. */
  readonly xds: string;
  readonly nodeId: string;
  readonly cluster: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Refuses each response with this text. */
  readonly refusal: string | undefined;
  readonly once: boolean;
  readonly tokenFile?: string;
  readonly tls?: boolean;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly onResponse: (response: WatchedResponse) => void;
}

const firstResponseMs = 10_000;
/** How long the stream may take to end after the last answer has been written. */
const closeMs = 1_000;
const maxResponseBytes = 256 * 1024 * 1024;

/** Resolves when the stream ends: to undefined if the caller stopped it, otherwise to the reason. */
export async function openDiscoveryWatch(
  options: DiscoveryWatchOptions,
): Promise<string | undefined> {
  const { xds, once, refusal, signal, clock, onResponse } = options;
  const metadata = new Metadata();
  if (options.tokenFile !== undefined) {
    const token = await readTokenFile(options.tokenFile);
    if (!token.ok) return token.message;
    metadata.set('authorization', `Bearer ${token.value}`);
  }
  const channel = await openChannel(options);
  if (typeof channel === 'string') return channel;
  const ended = Promise.withResolvers<string | undefined>();
  const { aggregated } = loadDiscoveryProtos();
  const { rateLimitConfig } = loadProtos();
  const { path, requestSerialize, responseDeserialize } = aggregated.StreamAggregatedResources;
  const stream = channel.makeBidiStreamRequest<DiscoveryRequestMessage, DiscoveryResponseMessage>(
    path,
    requestSerialize,
    responseDeserialize,
    metadata,
  );
  let accepted = '';
  const late = () => ended.resolve(`${xds} gave no response within ${firstResponseMs / 1000}s`);
  let cancelTimer = once ? clock.after(firstResponseMs, late) : () => {};
  signal.addEventListener('abort', () => ended.resolve(undefined), { once: true });
  stream.on('data', (response: DiscoveryResponseMessage) => {
    const { versionInfo = '', nonce = '', resources = [] } = response;
    if (refusal === undefined) accepted = versionInfo;
    onResponse({
      atMs: clock.wallMs(),
      version: versionInfo,
      nonce,
      resources: resources.map((any) => toResource(any, rateLimitConfig)),
      answer: refusal === undefined ? 'ACK' : 'NACK',
    });
    stream.write({
      typeUrl: rateLimitConfigTypeUrl,
      versionInfo: accepted,
      responseNonce: nonce,
      ...(refusal !== undefined && { errorDetail: { message: refusal } }),
    });
    if (!once) return;
    cancelTimer();
    // The answer must arrive before the stream ends.
    stream.end();
    cancelTimer = clock.after(closeMs, () => ended.resolve(undefined));
  });
  stream.on('error', (error: ServiceError) => ended.resolve(`${xds}: ${error.message}`));
  stream.on('end', () => ended.resolve(once ? undefined : `${xds} ended the stream`));
  stream.write({
    typeUrl: rateLimitConfigTypeUrl,
    node: {
      id: options.nodeId,
      cluster: options.cluster,
      metadata: {
        fields: Object.fromEntries(
          Object.entries(options.metadata).map(([key, value]) => [key, { stringValue: value }]),
        ),
      },
    },
  });
  try {
    return await ended.promise;
  } finally {
    cancelTimer();
    stream.cancel();
    channel.close();
  }
}

async function openChannel(options: DiscoveryWatchOptions): Promise<Client | string> {
  const { xds, tls } = options;
  const limits = { 'grpc.max_receive_message_length': maxResponseBytes };
  if (tls !== true) return new Client(xds, credentials.createInsecure(), limits);
  const secure = await readCredentials(options);
  return typeof secure === 'string' ? secure : new Client(xds, secure, limits);
}

function toResource(
  { type_url: typeUrl = '', value = Buffer.alloc(0) }: AnyMessage,
  message: Protos['rateLimitConfig'],
): WatchedResource {
  const bytes = value.length;
  const nothing = { name: '', domain: '', rules: 0, bytes };
  if (typeUrl !== rateLimitConfigTypeUrl) return { ...nothing, problem: `of type ${typeUrl}` };
  try {
    const config = message.deserialize(value);
    const { name = '', domain = '', descriptors = [] } = config;
    return { name, domain, rules: countRules(descriptors), bytes, config };
  } catch (error) {
    return { ...nothing, problem: `cannot be read: ${errorText(error)}` };
  }
}

function countRules(descriptors: readonly ConfigDescriptorMessage[]): number {
  return descriptors.reduce((sum, { descriptors: inner = [] }) => sum + 1 + countRules(inner), 0);
}
