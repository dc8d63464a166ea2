// Streams that methods return: converted to chunks of bytes, monitored while they are sent, and ended when they have no
// reader.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Readable } from 'node:stream';
import { setTimeout as setTimeoutPromise } from 'node:timers/promises';
import { isWhole, type ResponseLike } from '../request/request.ts';

interface NodeStream extends AsyncIterable<unknown> {
  on(event: 'error', listener: (error: unknown) => void): unknown;
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

/** Throws for a stream that was read, or that ended before it was read: its answer would be cut off after the head. */
export function refuseSpent(stream: object): void {
  const { locked, destroyed, errored, readableEnded } = stream as Partial<
    ReadableStream & Readable
  >;
  if (errored) throw errored;
  if (locked || destroyed || readableEnded) {
    throw new TypeError('the stream of the answer has been read or ended already');
  }
}

/** Texts become UTF-8. Returning the iterator destroys the stream, whether or not it was read. An error before the
 * first read is thrown to the reader later: without a listener it would end the process. */
function toChunks(stream: NodeStream): Chunks {
  let failure: { readonly error: unknown } | undefined;
  stream.on('error', (error) => {
    failure = { error };
  });
  return toIterable(() => {
    const iterator = stream[Symbol.asyncIterator]();
    return {
      async next() {
        const { done, value } = await iterator.next();
        if (done === true && failure !== undefined) throw failure.error;
        if (done === true) return { done, value: undefined };
        return { value: toChunk(value) };
      },
      async return() {
        stream.destroy();
        return { done: true, value: undefined };
      },
    };
  });
}

const firstWaitMs = 1_000;

/** The same chunks, after waiting at most a second for the first one: rejects with any failure until then, so that it
 * is answered like any other error. */
export async function toBegun(chunks: Chunks): Promise<Chunks> {
  const iterator = chunks[Symbol.asyncIterator]();
  let first: ReturnType<typeof iterator.next> | undefined = iterator.next();
  const over = new AbortController();
  const { signal } = over;
  try {
    await Promise.race([first, setTimeoutPromise(firstWaitMs, undefined, { signal })]);
  } finally {
    over.abort();
  }
  return toIterable(() => ({
    next() {
      const next = first ?? iterator.next();
      first = undefined;
      return next;
    },
    async return() {
      await iterator.return?.();
      return { done: true, value: undefined };
    },
  }));
}

/** The same chunks as bytes; a failure is reported before it is rethrown, unless the reader has disconnected: ending a
 * waiting stream makes it fail. A number of bytes other than `length` is a failure as well, since it would corrupt the
 * following answers on the connection. */
export function watchStream(
  chunks: Chunks,
  length: string | null,
  onError: (error: unknown) => void,
): Chunks {
  return toIterable(() => {
    // Every comparison with NaN is false.
    let left = length === null ? Number.NaN : Number(length);
    let iterator: AsyncIterator<unknown> | undefined;
    const open = () => {
      iterator ??= chunks[Symbol.asyncIterator]();
      return iterator;
    };
    let isOver = false;
    return {
      async next() {
        try {
          const { done, value } = await open().next();
          const chunk = done === true ? undefined : toChunk(value);
          left -= chunk?.length ?? 0;
          if (chunk === undefined ? left > 0 : left < 0) {
            void open().return?.();
            throw new TypeError(`the stream has not the ${length} bytes of its content-length`);
          }
          return chunk === undefined ? { done: true, value: undefined } : { value: chunk };
        } catch (error) {
          if (isOver) return { done: true, value: undefined };
          onError(error);
          throw error;
        }
      },
      async return() {
        isOver = true;
        await open().return?.();
        return { done: true, value: undefined };
      },
    };
  });
}

function toChunk(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === 'string') return encoder.encode(chunk);
  throw new TypeError('a chunk of the answer is neither bytes nor a text');
}

/** The stream of an answer as a hook sees it, which can replace it by another one that reads from it. Both end
 * together: a failure of this one is thrown to the reader of the replacement, not to the code that reads here, since a
 * `pipe` would end the process because of it; when the replacement ends, fails or loses its reader, this one is ended
 * too. */
export class ReplaceableStream implements AsyncIterable<Uint8Array> {
  readonly #chunks: Chunks;
  #iterator: AsyncIterator<Uint8Array> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(chunks: Chunks) {
    this.#chunks = chunks;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: async () => {
        try {
          return await this.#open().next();
        } catch (error) {
          this.#failure = { error };
          return { done: true, value: undefined };
        }
      },
      return: async () => {
        await this.end();
        return { done: true, value: undefined };
      },
    };
  }

  /** Ends the stream, whether or not it was read. */
  async end(): Promise<void> {
    try {
      await this.#open().return?.();
    } catch {
      // The stream was to end, and it has.
    }
  }

  get isRead(): boolean {
    return this.#iterator !== undefined;
  }

  /** Throws the failure that was hidden from its reader. */
  throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** The replacement as the answer's body. */
  replacedBy(replacement: AsyncIterable<Uint8Array>): Chunks {
    return toIterable(() => {
      const iterator = toBody(replacement)[Symbol.asyncIterator]();
      const leave = async () => {
        await Promise.allSettled([iterator.return?.(), this.end()]);
      };
      return {
        next: async () => {
          try {
            const result = await iterator.next();
            this.throwFailure();
            if (result.done === true) await this.end();
            return result;
          } catch (error) {
            await leave();
            throw error;
          }
        },
        return: async () => {
          await leave();
          return { done: true, value: undefined };
        },
      };
    });
  }

  #open(): AsyncIterator<Uint8Array> {
    this.#iterator ??= this.#chunks[Symbol.asyncIterator]();
    return this.#iterator;
  }
}

/** Converts a stream to chunks; leaving them ends the stream. All of it is made in the async context of this call, that
 * of the arounds, whatever code reads it. */
export function toBody(stream: Chunks | ReadableStream<Uint8Array>): Chunks {
  const isWeb = stream instanceof ReadableStream;
  const chunks = isWeb ? ofReader(stream) : isNodeStream(stream) ? toChunks(stream) : stream;
  const inside = AsyncLocalStorage.snapshot();
  return toIterable(() => {
    const iterator = inside(() => chunks[Symbol.asyncIterator]());
    return {
      next: () => inside(() => iterator.next()),
      return: async () =>
        (await inside(() => iterator.return?.())) ?? { done: true, value: undefined },
    };
  });
}

/** Reads with a reader, because the stream's own iterator would not cancel it while a chunk is pending. */
function ofReader(stream: ReadableStream<Uint8Array>): Chunks {
  return toIterable(() => {
    const reader = stream.getReader();
    return {
      async next() {
        const { done, value } = await reader.read();
        return done ? { done, value: undefined } : { value };
      },
      async return() {
        await reader.cancel();
        return { done: true, value: undefined };
      },
    };
  });
}

/** Ends a stream that will not be read. */
export async function cancelStream(body: ResponseLike['body']): Promise<void> {
  if (isWhole(body)) return;
  try {
    await body[Symbol.asyncIterator]().return?.();
  } catch {
    // The stream was to end, and it has.
  }
}

export async function endUnsent({ session, body }: ResponseLike): Promise<void> {
  session?.abandon();
  await cancelStream(body);
}

function toIterable(iterate: () => AsyncIterator<Uint8Array>): Chunks {
  return { [Symbol.asyncIterator]: iterate };
}
