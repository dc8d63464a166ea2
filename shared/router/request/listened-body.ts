// Chunks of a body as events: a stream of Node gives them so, and its iterator costs more than a whole request.
import { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

export interface BodyListener {
  onChunk(chunk: Uint8Array): void;
  onEnd(): void;
  onError(error: unknown): void;
}

/**
 * The whole body of a message of node:http that has arrived with its head, as most have: taken so, it costs less than by
 * its events. Undefined where there is more to come, or more than the bound. The parser that called us hands over the
 * body, and reports that there is no more, when it has been returned to: a turn of the event loop later it is known.
 */
export async function takeArrived(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  if (!(body instanceof IncomingMessage)) return undefined;
  if (!body.complete) await new Promise(setImmediate);
  if (!body.complete || body.destroyed || body.readableFlowing !== null) return undefined;
  return body.readableLength > maxBytes ? undefined : (body.read() ?? undefined);
}

/** Nothing is received after the returned function is called; what is left stays unread. */
export function listenTo(body: AsyncIterable<Uint8Array>, listener: BodyListener): () => void {
  return body instanceof Readable ? listenToStream(body, listener) : iterate(body, listener);
}

function listenToStream(stream: Readable, { onChunk, onEnd, onError }: BodyListener): () => void {
  const onClose = () => onError(new Error('closed'));
  stream.on('data', onChunk).on('end', onEnd).on('error', onError).on('close', onClose);
  if (stream.destroyed) onClose();
  return () => {
    stream.off('data', onChunk).off('end', onEnd).off('close', onClose).off('error', onError);
    // What comes is answered by then; a broken connection must not end the process.
    stream.on('error', () => {});
    stream.pause();
  };
}

function iterate(body: AsyncIterable<Uint8Array>, listener: BodyListener): () => void {
  const iterator = body[Symbol.asyncIterator]();
  let isStopped = false;
  const run = async (): Promise<void> => {
    for (let next = await iterator.next(); !isStopped; next = await iterator.next()) {
      if (next.done === true) {
        listener.onEnd();
        return;
      }
      listener.onChunk(next.value);
    }
  };
  run().catch((error: unknown) => {
    if (!isStopped) listener.onError(error);
  });
  return () => {
    isStopped = true;
    // Not awaited: `return` of a stalled body would wait as well.
    iterator.return?.().catch(() => {});
  };
}
