// Streams that methods return: converted to chunks of bytes, observed while they are sent, and ended when
// they have no reader.
import { isWhole, type ResponseLike } from '../request/request.ts';

interface NodeStream extends AsyncIterable<unknown> {
  destroy(): unknown;
}

type Chunks = AsyncIterable<Uint8Array>;

const encoder = new TextEncoder();

export function isNodeStream(value: unknown): value is NodeStream {
  return (
    typeof value === 'object' &&
    value !== null &&
    Symbol.asyncIterator in value &&
    'pipe' in value &&
    'destroy' in value
  );
}

/** Texts become UTF-8. Returning the iterator destroys the stream, read from or not. */
export function toChunks(stream: NodeStream): Chunks {
  return toIterable(() => {
    const iterator = stream[Symbol.asyncIterator]();
    return {
      async next() {
        const { done, value } = await iterator.next();
        if (done === true) return { done, value: undefined };
        return { value: value instanceof Uint8Array ? value : encoder.encode(String(value)) };
      },
      async return() {
        stream.destroy();
        return { done: true, value: undefined };
      },
    };
  });
}

/** The same chunks; a failure is reported before it is thrown on, unless the reader has left: ending a
 * stream that waits makes it fail. */
export function watchStream(chunks: Chunks, onError: (error: unknown) => void): Chunks {
  return toIterable(() => {
    const iterator = chunks[Symbol.asyncIterator]();
    let isOver = false;
    return {
      async next() {
        try {
          return await iterator.next();
        } catch (error) {
          if (isOver) return { done: true, value: undefined };
          onError(error);
          throw error;
        }
      },
      async return() {
        isOver = true;
        return (await iterator.return?.()) ?? { done: true, value: undefined };
      },
    };
  });
}

/** Ends what will not be read. */
export async function cancelStream(body: ResponseLike['body']): Promise<void> {
  if (isWhole(body)) return;
  try {
    await body[Symbol.asyncIterator]().return?.();
  } catch {
    // It was to end, and it has.
  }
}

function toIterable(iterate: () => AsyncIterator<Uint8Array>): Chunks {
  return { [Symbol.asyncIterator]: iterate };
}
