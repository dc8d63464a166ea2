// The ADS server on a free port, with snapshots that a test sets; and discovery streams to it.
import {
  type ChannelCredentials,
  Client,
  type ClientDuplexStream,
  credentials,
  Metadata,
  type StatusObject,
} from '@grpc/grpc-js';
import type { MethodDefinition } from '@grpc/proto-loader';
import {
  createResource,
  createSnapshot,
  type NodeIdentity,
  type Snapshot,
} from '../../control-plane/server/snapshot/snapshot.ts';
import {
  AdsServer,
  type AdsServerDeps,
  type AdsServerOptions,
} from '../../control-plane/server/xds/ads-server.ts';
import type { XdsMetrics } from '../../control-plane/server/xds/discovery-stream.ts';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { loadDiscoveryProtos, rateLimitConfigTypeUrl } from '../../shared/wire/discovery.ts';
import { eventually } from './eventually.ts';
import type { Owner } from './owner.ts';
import { createRecordedLog } from './recorded-log.ts';

export const discoveryProtos = loadDiscoveryProtos();

export const noMetrics: XdsMetrics = {
  streams() {},
  responseSent() {},
  acked() {},
  nacked() {},
  dropped() {},
};

/** Resources with these texts as their content, which need not be valid configurations here. */
export function snapshotOf(contents: Readonly<Record<string, string>>): Snapshot {
  return createSnapshot(
    Object.entries(contents).map(([name, text]) => createResource(name, Buffer.from(text))),
  );
}

export interface AdsFixtureOptions extends Partial<AdsServerOptions> {
  readonly snapshot?: Snapshot;
  readonly authorize?: NonNullable<AdsServerDeps['authorize']>;
  readonly metrics?: XdsMetrics;
  readonly methods?: NonNullable<AdsServerDeps['methods']>;
  readonly clock?: Clock;
}

export async function startAds(t: Owner, options: AdsFixtureOptions = {}) {
  const {
    snapshot,
    authorize,
    metrics = noMetrics,
    methods,
    clock = systemClock,
    ...serverOptions
  } = options;
  const log = createRecordedLog();
  let current: (node: NodeIdentity) => Snapshot | undefined = () => snapshot;
  const server = new AdsServer(
    {
      snapshots: { current: (node) => current(node) },
      log,
      clock,
      protos: discoveryProtos,
      ...(authorize === undefined ? {} : { authorize }),
      metrics,
      ...(methods === undefined ? {} : { methods }),
    },
    { host: '127.0.0.1', port: 0, ...serverOptions },
  );
  const stop = () => server.stop(500);
  t.teardown(stop);
  const choose = (choice: typeof current): void => {
    current = choice;
    server.refresh();
  };
  return {
    server,
    port: await server.start(),
    log,
    /** Sets the snapshot of all nodes. */
    set: (next: Snapshot) => choose(() => next),
    /** Sets a function that returns each node's snapshot. */
    choose,
    /** Called at the end of its owner, at the latest. */
    stop,
  };
}

export interface DiscoveryCaller<Request, Response> {
  /** Sets our type, unless the request has another. */
  send(request: Request): void;
  /** The next response; fails when none comes, by default within 30 seconds. */
  next(timeoutMs?: number): Promise<Response>;
  /** Responses that `next` has not returned yet. */
  readonly waiting: readonly Response[];
  /** How the stream ended; fails when it does not. */
  status(): Promise<StatusObject>;
  halfClose(): void;
  close(): void;
}

export interface CallerOptions {
  readonly credentials?: ChannelCredentials;
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A stream on its own connection, which is closed when its owner ends; `first` is its first request. */
export function callDiscovery<Request extends object, Response>(
  t: Owner,
  port: number,
  method: MethodDefinition<Request, Response, Request, Response>,
  first?: Request,
  options: CallerOptions = {},
): DiscoveryCaller<Request, Response> {
  const client = new Client(
    `localhost:${port}`,
    options.credentials ?? credentials.createInsecure(),
    { 'grpc.use_local_subchannel_pool': 1, 'grpc.max_receive_message_length': -1 },
  );
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(options.metadata ?? {})) metadata.set(name, value);
  const stream: ClientDuplexStream<Request, Response> = client.makeBidiStreamRequest(
    method.path,
    method.requestSerialize,
    method.responseDeserialize,
    metadata,
  );
  const waiting: Response[] = [];
  let status: StatusObject | undefined;
  stream.on('data', (response: Response) => waiting.push(response));
  stream.on('status', (given: StatusObject) => {
    status = given;
  });
  stream.on('error', () => {});
  const close = () => {
    stream.cancel();
    client.close();
  };
  t.teardown(close);
  const send = (request: Request) =>
    void stream.write({ typeUrl: rateLimitConfigTypeUrl, ...request });
  if (first !== undefined) send(first);
  return {
    waiting,
    send,
    async next(timeoutMs) {
      const hasCome = () => waiting.length > 0 || status !== undefined;
      await eventually('a response', hasCome, timeoutMs);
      const response = waiting.shift();
      if (response === undefined) throw new Error(`the stream ended: ${status?.details}`);
      return response;
    },
    async status() {
      await eventually('the end of the stream', () => status !== undefined);
      return status as StatusObject;
    },
    halfClose: () => void stream.end(),
    close,
  };
}
