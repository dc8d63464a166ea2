// Streaming methods whose code is loaded when the first stream is opened.
import { errorText } from '../../../shared/errors.ts';
import { grpcStatus } from '../../../shared/grpc/status.ts';
import type { StreamCaller, StreamHandler, StreamMethod } from '../../grpc/method.ts';

/** Limit of the messages of one caller that wait for it. */
const maxWaiting = 100;

/**
 * A stream whose method is being loaded: the caller's events meanwhile are passed to its handler afterwards, in order.
 * `name` is for the error when loading fails.
 */
export function openWhenLoaded(
  caller: StreamCaller,
  loading: Promise<StreamMethod['open']>,
  name: string,
): StreamHandler {
  let handler: StreamHandler | undefined;
  let isClosed = false;
  let waiting: ((handler: StreamHandler) => void)[] = [];

  function give(event: (handler: StreamHandler) => void): void {
    if (handler !== undefined) event(handler);
    else if (waiting.length < maxWaiting) waiting.push(event);
    else caller.finish({ status: grpcStatus.resourceExhausted, text: 'too many messages at once' });
  }

  loading.then(
    (open) => {
      if (isClosed) return;
      handler = open(caller);
      for (const event of waiting) event(handler);
      waiting = [];
    },
    (error: unknown) => {
      const text = `${name} could not be loaded: ${errorText(error)}`;
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
