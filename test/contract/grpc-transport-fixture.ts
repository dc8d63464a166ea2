// Transports under test, and methods for them to carry.
import type { ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../shared/clock.ts';
import type { ListenAddress } from '../../worker/listen/address.ts';
import type {
  GrpcMethod,
  StreamCaller,
  StreamHandler,
  UnaryMethod,
} from '../../worker/listen/grpc/method.ts';
import type {
  CreateGrpcTransport,
  GrpcTransport,
  GrpcTransportOptions,
} from '../../worker/listen/grpc/transport.ts';
import { createRecordedLog, type RecordedLog } from '../support/recorded-log.ts';
import { type Caller, type CallerTls, createCaller } from './grpc-transport-caller.ts';

export interface TransportSuite {
  /** Starts the titles. */
  readonly name: string;
  readonly createTransport: CreateGrpcTransport;
}

export interface Started {
  readonly transport: GrpcTransport;
  readonly address: ListenAddress;
  readonly log: RecordedLog;
  connect(tls?: CallerTls): Promise<Caller>;
}

const anyPort = { host: '127.0.0.1', port: 0 };

/** Answers with the request's bytes. */
export const echo: UnaryMethod = {
  kind: 'unary',
  answer(request, _timeoutMs, reply) {
    reply({ ok: true, message: Buffer.from(request) });
    return () => {};
  },
};

export async function startTransport(
  { createTransport }: TransportSuite,
  t: ExecutionContext,
  methods: Record<string, GrpcMethod> = { '/test.Echo/Echo': echo },
  options: Partial<GrpcTransportOptions> = {},
  clock: Clock = systemClock,
): Promise<Started> {
  const log = createRecordedLog();
  const transport = createTransport(
    { methods: new Map(Object.entries(methods)), log, clock },
    { target: anyPort, ...options },
  );
  t.teardown(() => transport.stop(0));
  const address = await transport.start();
  return {
    transport,
    address,
    log,
    async connect(tls) {
      const caller = await createCaller(address, tls);
      t.teardown(caller.close);
      return caller;
    },
  };
}

/** A method whose answers are given by the test. */
export function recordCalls() {
  const calls = {
    replies: [] as (() => void)[],
    gone: 0,
    method: {
      kind: 'unary',
      answer(request, _timeoutMs, reply) {
        const message = Buffer.from(request);
        calls.replies.push(() => reply({ ok: true, message }));
        return () => {
          calls.gone++;
        };
      },
    } satisfies UnaryMethod as UnaryMethod,
  };
  return calls;
}

export function toStream(open: (caller: StreamCaller) => StreamHandler): GrpcMethod {
  return { kind: 'stream', open };
}
