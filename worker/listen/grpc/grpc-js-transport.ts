// The gRPC transport over @grpc/grpc-js: HTTP/2, frames and deadlines are its work. Connections come
// from the acceptor, so that binding, TLS and the checks of clients are the same for every transport.
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServerDuplexStream,
  type ServerInterceptingCall,
  type ServerInterceptor,
  type ServerUnaryCall,
  type sendUnaryData,
} from '@grpc/grpc-js';
import { errorText } from '../../../shared/errors.ts';
import { maxRequestBytes } from '../../decision/request-bounds.ts';
import { createAcceptor } from './acceptor.ts';
import {
  type GrpcErrorStatus,
  type GrpcMethods,
  grpcStatus,
  type StreamMethod,
  type UnaryMethod,
  unknownMethodText,
} from './method.ts';
import type { GrpcTransport, GrpcTransportDeps, GrpcTransportOptions } from './transport.ts';

/** Calls at once on one connection; bounds what one peer can make this process remember. */
const maxConcurrentStreams = 1024;
/** gRPC's own defaults for finding dead peers. */
const keepAliveMs = 2 * 60 * 60 * 1000;
const keepAliveTimeoutMs = 20_000;
/** The longest age whose jitter still fits into a timer; about 22 days. */
const longestTimerMs = 1_950_000_000;

/** Envoy asks other servers from then on, without waiting for its health check. */
const farewell = new Metadata();
farewell.set('x-envoy-immediate-health-check-fail', 'true');

type Call = ServerDuplexStream<Buffer, Buffer>;

export function createGrpcJsTransport(
  { methods, log, clock, onRefused }: GrpcTransportDeps,
  options: GrpcTransportOptions,
): GrpcTransport {
  const { maxConnectionAgeMs, maxConnectionAgeGraceMs } = options;
  const server = new Server({
    'grpc.enable_channelz': 0,
    'grpc.max_receive_message_length': maxRequestBytes,
    'grpc.max_concurrent_streams': maxConcurrentStreams,
    'grpc.keepalive_time_ms': keepAliveMs,
    'grpc.keepalive_timeout_ms': keepAliveTimeoutMs,
    ...(maxConnectionAgeMs === undefined
      ? {}
      : { 'grpc.max_connection_age_ms': Math.min(maxConnectionAgeMs, longestTimerMs) }),
    ...(maxConnectionAgeGraceMs === undefined
      ? {}
      : { 'grpc.max_connection_age_grace_ms': Math.min(maxConnectionAgeGraceMs, longestTimerMs) }),
    interceptors: [correctStatusTexts],
  });
  const openStreams = new Set<(error: StreamError) => void>();
  for (const [path, method] of methods) {
    if (method.kind === 'unary') register(path, 'unary', toUnaryHandler(method));
    else register(path, 'bidi', toStreamHandler(method));
  }
  answerUnknownMethods(server, methods);
  const injector = server.createConnectionInjector(ServerCredentials.createInsecure());
  const acceptor = createAcceptor({
    target: options.target,
    tls: options.tls,
    maxConnections: options.maxConnections,
    log,
    clock,
    onRefused,
    onConnection(socket) {
      injector.injectConnection(socket);
      // The library does not tell, so that it is who comes last who goes at the bound.
      return { lastAskedMs: undefined, isBusy: true };
    },
  });
  let isTurningAway = false;
  let stopping: Promise<void> | undefined;

  function register(path: string, type: string, handler: (call: never, reply: never) => void) {
    server.register(path, handler as never, identity, identity, type);
  }

  function toUnaryHandler(method: UnaryMethod) {
    return (call: ServerUnaryCall<Buffer, Buffer>, reply: sendUnaryData<Buffer>): void => {
      const receivedMs = clock.monotonicMs();
      const deadline = Number(call.getDeadline());
      const { request } = call;
      const send = (write: () => void) => {
        try {
          write();
        } catch (error) {
          // The connection broke while the answer was written: there is nobody to tell.
          if (log.isDebug) log.debug(`a gRPC answer could not be sent: ${errorText(error)}`);
        }
      };
      const pending = method.answer(request, 0, request.length, {
        receivedMs,
        timeoutMs: deadline === Infinity ? undefined : Math.max(0, deadline - Date.now()),
        peer: () => call.getPeer(),
        header: (name) => call.metadata.get(name)[0]?.toString(),
        succeed(message, length) {
          // A copy: the library may write it later.
          if (isTurningAway) send(() => call.sendMetadata(farewell));
          send(() => reply(null, Buffer.from(message.subarray(0, length))));
        },
        fail: (code, details) => send(() => reply({ code, details })),
      });
      // Also emitted after a normal end, where it means nothing to the method.
      call.once('cancelled', () => pending?.cancel());
    };
  }

  function toStreamHandler(method: StreamMethod) {
    return (call: Call): void => {
      let isOpen = true;
      const finish = (error?: StreamError) => {
        if (!isOpen) return;
        close();
        if (error === undefined) call.end();
        else call.emit('error', { code: error.status, details: error.text });
      };
      const handler = method.open({
        send(message) {
          // A caller that does not read is not read from either.
          if (isOpen && !call.write(message)) {
            call.pause();
            call.once('drain', () => call.resume());
          }
        },
        finish,
      });
      const close = () => {
        if (!isOpen) return;
        isOpen = false;
        openStreams.delete(finish);
        handler.closed();
      };
      openStreams.add(finish);
      call.on('data', (bytes: Buffer) => isOpen && handler.message(bytes));
      call.once('end', () => isOpen && handler.halfClose());
      call.once('cancelled', close);
      call.once('close', close);
    };
  }

  async function stopOnce(graceMs: number): Promise<void> {
    acceptor.stopAccepting();
    for (const finish of openStreams) {
      finish({ status: grpcStatus.unavailable, text: 'the server is stopping' });
    }
    const drained = new Promise<void>((resolve) => server.tryShutdown(() => resolve()));
    const cancelTimer = clock.after(graceMs, () => acceptor.destroyConnections());
    await drained;
    await acceptor.closed();
    cancelTimer();
  }

  return {
    start: () => acceptor.start(),
    replaceCertificates: (certificates) => acceptor.replaceCertificates(certificates),
    turnAway() {
      isTurningAway = true;
      return acceptor.hasConnections();
    },
    stop(graceMs) {
      stopping ??= stopOnce(graceMs);
      return stopping;
    },
  };
}

interface StreamError {
  readonly status: GrpcErrorStatus;
  readonly text: string;
}

function identity(bytes: Buffer): Buffer {
  return bytes;
}

/**
 * The library's own texts become those of the reference (behaviour: errors-over-grpc), and half a
 * surrogate pair in ours becomes a replacement character, because the library throws on it.
 */
const correctStatusTexts: ServerInterceptor = (_method, call) => {
  const send = call.sendStatus.bind(call);
  call.sendStatus = (status) => {
    send({ ...status, details: correctText(status.details ?? '') });
  };
  // Unwrapped, which saves an object with a queue per call; the library uses the interface alone.
  return call as unknown as ServerInterceptingCall;
};

function correctText(text: string): string {
  const tooLarge = /^Received message larger than max \((\d+) vs (\d+)\)$/.exec(text);
  if (tooLarge === null) return text.toWellFormed();
  return `grpc: received message larger than max (${tooLarge[1]} vs. ${tooLarge[2]})`;
}

interface Lookup {
  _retrieveHandler(path: string | undefined): unknown;
}

/**
 * The library has no hook for paths that are not registered, and answers them with a text of its
 * own: its lookup is wrapped so that they get a method that refuses.
 */
function answerUnknownMethods(server: Server, methods: GrpcMethods): void {
  const lookup = server as unknown as Lookup;
  const retrieve = lookup._retrieveHandler.bind(server);
  lookup._retrieveHandler = (path) =>
    retrieve(path) ?? {
      path,
      type: 'bidi',
      serialize: identity,
      deserialize: identity,
      func(call: Call & { metadata: Metadata }) {
        const details = unknownMethodText(path ?? '', methods);
        call.emit('error', { code: grpcStatus.unimplemented, details });
      },
    };
}
