// Receives traces over OTLP, like a collector: protobuf over HTTP and gRPC. It defines the messages itself, so that it
// does not share a mistake with the library that sends them.
import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type Metadata, Server, ServerCredentials } from '@grpc/grpc-js';
import { loadSync, type MethodDefinition } from '@grpc/proto-loader';
import { listenFor } from './listen.ts';
import type { Owner } from './owner.ts';

type Attributes = Readonly<Record<string, string | number>>;

export interface ReceivedSpan {
  readonly scope: string;
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  /** In hexadecimal, as in trace headers; '' without a parent. */
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly attributes: Attributes;
  /** 0 unset, 2 error. */
  readonly status: number;
  readonly statusText: string;
  readonly resource: Attributes;
}

export interface OtlpReceiver {
  /** The endpoint, without a path. */
  readonly url: string;
  /** In the order of arrival. */
  readonly spans: readonly ReceivedSpan[];
  /** The headers of each export, in the order of arrival. */
  readonly headers: readonly Readonly<Record<string, string | undefined>>[];
  /** HTTP only: from now on exports are answered with this status; 200 accepts them. */
  answerWith(status: number): void;
  close(): Promise<void>;
}

interface Value {
  readonly stringValue?: string;
  readonly intValue?: number;
  readonly doubleValue?: number;
}
interface KeyValue {
  readonly key: string;
  readonly value: Value;
}
interface SpanMessage {
  readonly traceId: Buffer;
  readonly spanId: Buffer;
  readonly parentSpanId?: Buffer;
  readonly name: string;
  readonly kind: number;
  readonly attributes?: readonly KeyValue[];
  readonly status?: { readonly message?: string; readonly code?: number };
}
interface ExportRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeSpans?: readonly {
      readonly scope?: { readonly name?: string };
      readonly spans?: readonly SpanMessage[];
    }[];
  }[];
}

const definition = loadSync(join(import.meta.dirname, 'otlp-traces.proto'), { longs: Number });
const service = definition['opentelemetry.proto.collector.trace.v1.TraceService'] as unknown as {
  readonly Export: MethodDefinition<ExportRequest, object, ExportRequest, object>;
};

/** Closed when its owner ends, if not before. */
export async function startOtlpReceiver(
  t: Owner,
  protocol: 'http' | 'grpc',
): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const headers: Record<string, string | undefined>[] = [];
  const receive = (request: ExportRequest) => spans.push(...toSpans(request));
  const received = { spans, headers };
  const receiver = await (protocol === 'grpc' ? serveGrpc : serveHttp)(received, receive);
  t.teardown(receiver.close);
  return receiver;
}

type Received = Pick<OtlpReceiver, 'spans'> & {
  readonly headers: Record<string, string | undefined>[];
};

async function serveHttp(
  received: Received,
  receive: (request: ExportRequest) => void,
): Promise<OtlpReceiver> {
  let status = 200;
  const server = createHttpServer(async (request, response) => {
    const body = await readBody(request);
    received.headers.push(request.headers as Record<string, string | undefined>);
    if (request.method !== 'POST' || request.url !== '/v1/traces') response.statusCode = 404;
    else response.statusCode = status;
    if (response.statusCode === 200) receive(service.Export.requestDeserialize(body));
    response.setHeader('content-type', 'application/x-protobuf').end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...received,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    answerWith: (newStatus) => {
      status = newStatus;
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function serveGrpc(
  received: Received,
  receive: (request: ExportRequest) => void,
): Promise<OtlpReceiver> {
  const server = new Server();
  server.addService({ Export: service.Export }, {
    Export(
      call: { readonly metadata: Metadata; readonly request: ExportRequest },
      reply: (error: null, answer: object) => void,
    ) {
      received.headers.push(call.metadata.getMap() as Record<string, string>);
      receive(call.request);
      reply(null, {});
    },
  } as never);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return {
    ...received,
    url: `http://127.0.0.1:${port}`,
    answerWith() {
      throw new Error('only over HTTP');
    },
    async close() {
      server.forceShutdown();
    },
  };
}

/** Closed when its owner ends. */
export async function startStalledReceiver(t: Owner) {
  const sockets: Socket[] = [];
  const server = createServer({ pauseOnConnect: true }, (socket) => {
    sockets.push(socket.on('error', () => {}));
  });
  const port = await listenFor(t, server);
  return {
    url: `http://127.0.0.1:${port}`,
    get connections() {
      return sockets.length;
    },
  };
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function toSpans({ resourceSpans = [] }: ExportRequest): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans.flatMap(({ scope, spans = [] }) =>
      spans.map((span) => ({
        scope: scope?.name ?? '',
        name: span.name,
        kind: span.kind,
        traceId: span.traceId.toString('hex'),
        spanId: span.spanId.toString('hex'),
        parentSpanId: span.parentSpanId?.toString('hex') ?? '',
        attributes: toAttributes(span.attributes),
        status: span.status?.code ?? 0,
        statusText: span.status?.message ?? '',
        resource: toAttributes(resource?.attributes),
      })),
    ),
  );
}

function toAttributes(pairs: readonly KeyValue[] = []): Attributes {
  return Object.fromEntries(
    pairs.map(({ key, value }) => [
      key,
      value.stringValue ?? value.intValue ?? value.doubleValue ?? '',
    ]),
  );
}
