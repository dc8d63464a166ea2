// Server reflection, by which command-line tools find the services without proto files. It is rarely used,
// so the library and the descriptions are loaded with the first request.
import { errorText } from '../../../shared/errors.ts';
import type {
  GrpcMethod,
  StreamCaller,
  StreamHandler,
  StreamMethod,
} from '../../../shared/grpc/method.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';

/** Both published versions of the protocol. */
const paths = ['v1', 'v1alpha'].map(
  (version) => `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
);
/** Limit of requests of one caller that wait while the library is loaded. */
const maxWaiting = 100;

export function createReflectionMethods(): [path: string, method: GrpcMethod][] {
  let loading: Promise<ReadonlyMap<string, StreamMethod>> | undefined;

  async function load(path: string): Promise<StreamMethod> {
    loading ??= loadAnswers();
    const method = (await loading).get(path);
    if (method === undefined) throw new Error(`${path} is not among the answers`);
    return method;
  }

  return paths.map((path) => [
    path,
    { kind: 'stream', open: (caller) => openWhenLoaded(caller, load(path)) },
  ]);
}

async function loadAnswers(): Promise<ReadonlyMap<string, StreamMethod>> {
  const { createReflectionAnswers } = await import('./reflection-answers.ts');
  const { describeProtos } = await import('../../../shared/wire/protos.ts');
  return createReflectionAnswers(describeProtos());
}

/** The caller's events meanwhile are passed to the handler afterwards, in order. */
function openWhenLoaded(caller: StreamCaller, loading: Promise<StreamMethod>): StreamHandler {
  let handler: StreamHandler | undefined;
  let isClosed = false;
  let waiting: ((handler: StreamHandler) => void)[] = [];

  function give(event: (handler: StreamHandler) => void): void {
    if (handler !== undefined) event(handler);
    else if (waiting.length < maxWaiting) waiting.push(event);
    else
      caller.finish({ status: grpcStatus.resourceExhausted, text: 'too many questions at once' });
  }

  loading.then(
    (method) => {
      if (isClosed) return;
      handler = method.open(caller);
      for (const event of waiting) event(handler);
      waiting = [];
    },
    (error: unknown) => {
      const text = `reflection could not be loaded: ${errorText(error)}`;
      caller.finish({ status: grpcStatus.internal, text });
    },
  );
  return {
    message(bytes) {
      // The bytes belong to the transport again when this returns.
      const message = Buffer.from(bytes);
      give((opened) => opened.message(message));
    },
    halfClose: () => give((opened) => opened.halfClose()),
    closed() {
      isClosed = true;
      handler?.closed();
    },
  };
}
