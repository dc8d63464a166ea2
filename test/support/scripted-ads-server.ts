// A management server whose messages a test provides one by one: real gRPC, real sockets, no logic of its own.
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type status,
} from '@grpc/grpc-js';
import { loadDiscoveryProtos, rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import type {
  AnyMessage,
  DiscoveryRequestMessage,
  DiscoveryResponseMessage,
} from '../../shared/wire/discovery-messages.ts';
import { loadProtos } from '../../shared/wire/protos.ts';
import type { RateLimitConfigMessage } from '../../shared/wire/rate-limit-config-message.ts';
import { eventually } from './eventually.ts';
import type { Owner } from './owner.ts';

const { aggregated } = loadDiscoveryProtos();
const { rateLimitConfig } = loadProtos();

export type ScriptedAdsServer = Awaited<ReturnType<typeof startScriptedAdsServer>>;

type ScriptedStream = ReturnType<typeof createStream>;

export interface ScriptedAdsServerOptions {
  readonly credentials?: ServerCredentials;
  readonly port?: number;
}

export async function startScriptedAdsServer(
  t: Owner,
  { credentials = ServerCredentials.createInsecure(), port = 0 }: ScriptedAdsServerOptions = {},
) {
  const streams: ScriptedStream[] = [];
  const server = new Server({ 'grpc.max_send_message_length': -1 });
  server.addService(aggregated, {
    StreamAggregatedResources: (call: Call) => streams.push(createStream(call)),
  });
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, credentials, (error, found) =>
      error ? reject(error) : resolve(found),
    );
  });
  let isStopped = false;
  const stop = () => {
    isStopped = true;
    server.forceShutdown();
  };
  t.teardown(stop);
  return {
    port: bound,
    /** Such as `localhost:12345`. */
    url: `localhost:${bound}`,
    /** All streams so far, in the order of arrival. */
    streams,
    /** Waits for the `index`th stream. */
    async stream(index: number) {
      await eventually(`stream ${index}`, () => isStopped || streams.length > index);
      const stream = streams[index];
      if (stream === undefined) throw new Error('the management server has stopped');
      return stream;
    },
    /** Cuts every connection. Idempotent. */
    stop,
  };
}

type Call = ServerDuplexStream<DiscoveryRequestMessage, DiscoveryResponseMessage>;

function createStream(call: Call) {
  const requests: DiscoveryRequestMessage[] = [];
  let isGone = false;
  call.on('data', (request: DiscoveryRequestMessage) => requests.push(request));
  call.on('end', () => call.end());
  call.on('cancelled', () => {
    isGone = true;
  });
  call.on('error', () => {});
  return {
    headers: call.metadata,
    requests,
    /** Waits for the `index`th request. */
    async request(index: number) {
      await eventually(`request ${index}`, () => requests.length > index);
      return requests[index] as DiscoveryRequestMessage;
    },
    send: (versionInfo: string, nonce: string, resources: readonly AnyMessage[]) => {
      call.write({ versionInfo, nonce, resources, typeUrl: rateLimitConfigTypeUrl });
    },
    /** Ends the stream regularly. */
    end: () => call.end(),
    fail: (code: status, details: string) => {
      call.emit('error', { code, details, metadata: new Metadata() });
    },
    /** True once the client has disconnected. */
    get isGone() {
      return isGone;
    },
  };
}

export function toAny(config: RateLimitConfigMessage): AnyMessage {
  return { type_url: rateLimitConfigTypeUrl, value: rateLimitConfig.serialize(config) };
}

/** A resource that limits key `k` of `domain` to `limit` a second; without a limit, an invalid one. */
export function limitResource(name: string, domain: string, limit?: number): AnyMessage {
  const rateLimit = { unit: limit === undefined ? 0 : 1, requestsPerUnit: limit ?? 1 };
  return toAny({ name, domain, descriptors: [{ key: 'k', rateLimit }] });
}
