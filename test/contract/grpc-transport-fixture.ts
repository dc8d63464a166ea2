// Transports under test, and methods to call on them.
import type { ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { maxRequestBytes } from '../../worker/decision/request-bounds.ts';
import { Http2Transport } from '../../worker/grpc/http2/http2-transport.ts';
import type { LargeRequests } from '../../worker/grpc/large-requests.ts';
import type {
  GrpcMethod,
  StreamCaller,
  StreamHandler,
  UnaryMethod,
} from '../../worker/grpc/method.ts';
import type { GrpcTransportOptions } from '../../worker/grpc/transport.ts';
import { listeners } from '../../worker/listen/listeners.ts';
import { createHttp2Peer } from '../support/http2-peer.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { type CallerTls, createCaller } from './grpc-transport-caller.ts';

const anyPort = { host: '127.0.0.1', port: 0 };

/** Answers with the request's bytes. */
export const echo: UnaryMethod = {
  kind: 'unary',
  answer(bytes, start, end, call) {
    call.succeed(Buffer.from(bytes.subarray(start, end)));
    return undefined;
  },
};

export async function startTransport(
  t: ExecutionContext,
  methods: Record<string, GrpcMethod> = { '/test.Echo/Echo': echo },
  options: Partial<GrpcTransportOptions> = {},
  clock: Clock = systemClock,
  largeRequests?: LargeRequests,
) {
  const log = createRecordedLog();
  const transport = new Http2Transport(
    { methods: new Map(Object.entries(methods)), log, clock, largeRequests },
    { names: listeners.gRPC, maxRequestBytes, target: anyPort, ...options },
  );
  t.teardown(() => transport.stop(0));
  const address = await transport.start();
  return {
    transport,
    address,
    log,
    async connect(tls?: CallerTls) {
      const caller = await createCaller(address, tls);
      t.teardown(caller.close);
      return caller;
    },
    /** A connection that has exchanged SETTINGS and is otherwise passive. */
    async connectPeer(settings?: Readonly<Record<number, number>>) {
      const peer = await createHttp2Peer({ port: address.port });
      t.teardown(peer.close);
      await peer.greet(settings);
      return peer;
    },
  };
}

/** A method whose answers the test provides. */
export function recordCalls() {
  const calls = {
    replies: [] as (() => void)[],
    gone: 0,
    method: {
      kind: 'unary',
      answer(bytes, start, end, call) {
        const message = Buffer.from(bytes.subarray(start, end));
        calls.replies.push(() => call.succeed(message));
        return {
          cancel() {
            calls.gone++;
          },
        };
      },
    } satisfies UnaryMethod as UnaryMethod,
  };
  return calls;
}

export function toStream(open: (caller: StreamCaller) => StreamHandler): GrpcMethod {
  return { kind: 'stream', open };
}
