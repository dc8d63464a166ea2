// Streams that methods return: converted to chunks of bytes, monitored while they are sent, and ended when they have no
// reader.
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Readable } from 'node:stream';
import { setTimeout as setTimeoutPromise } from 'node:timers/promises';
import { isBuffered, type ResponseLike } from '../request/request.ts';

interface NodeStream extends AsyncIterable<unknown> {
  readonly destroyed?: boolean;
  on(event: 'error', listener: (error: unknown) => void): unknown;
  on(event: 'unpipe', listener: (source: NodeStream) => void): unknown;
  destroy(): unknown;
}

type Chunks = AsyncIterable<Uint8Array>;

/** How a stream is read, and how it is ended, whether or not it was read. */
interface Source<Chunk> {
  next(): Promise<{ readonly done?: boolean | undefined; readonly value?: Chunk | undefined }>;
  end(): unknown;
}

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

/** Converts a stream to chunks of bytes; texts become UTF-8. All of it is read and ended in the async context of this
 * call, that of the arounds, whatever code reads it. Throws for a stream that was read, or that ended before it was
 * read: its answer would be cut off after the head. */
export function toBody(stream: Chunks | ReadableStream<Uint8Array>): Chunks {
  const { next, end } = stream instanceof ReadableStream ? ofReader(stream) : ofIterator(stream);
  const inside = AsyncLocalStorage.snapshot();
  return toChunks({
    async next() {
      const { done, value } = await inside(next);
      return done === true ? { done } : { value: toChunk(value) };
    },
    end: () => inside(end),
  });
}

/** Reads with a reader, because the stream's own iterator would not cancel it while a chunk is pending. */
function ofReader(stream: ReadableStream): Source<unknown> {
  refuseSpent(stream);
  const reader = stream.getReader();
  return { next: () => reader.read(), end: () => reader.cancel() };
}

function ofIterator(stream: AsyncIterable<unknown>): Source<unknown> {
  let iterator: AsyncIterator<unknown> | undefined;
  const open = () => {
    iterator ??= stream[Symbol.asyncIterator]();
    return iterator;
  };
  if (!isNodeStream(stream)) return { next: () => open().next(), end: () => open().return?.() };
  // An error before the first read is thrown to the reader later: without a listener it would end the process.
  let failure: { readonly error: unknown } | undefined;
  stream.on('error', (error) => {
    failure = { error };
  });
  // A `pipe` into a stream does not end with it.
  stream.on('unpipe', (source) => stream.destroyed && source.destroy());
  refuseSpent(stream);
  return {
    async next() {
      const result = await open().next();
      if (result.done === true && failure !== undefined) throw failure.error;
      return result;
    },
    end: () => stream.destroy(),
  };
}

function refuseSpent(stream: object): void {
  const { locked, destroyed, errored, readableEnded } = stream as Partial<
    ReadableStream & Readable
  >;
  if (errored) throw errored;
  if (locked || destroyed || readableEnded) {
    throw new TypeError('the stream of the answer has been read or ended already');
  }
}

function toChunk(chunk: unknown): Uint8Array {
  if (chunk instanceof Uint8Array) return chunk;
  if (typeof chunk === 'string') return encoder.encode(chunk);
  throw new TypeError('a chunk of the answer is neither bytes nor a text');
}

/** Has one iterator, which ends the source after a failure too. Returning it never rejects, and need not be awaited. */
function toChunks({ next, end }: Source<Uint8Array>): Chunks {
  const iterator = {
    async next() {
      try {
        return (await next()) as IteratorResult<Uint8Array>;
      } catch (error) {
        void iterator.return();
        throw error;
      }
    },
    async return() {
      try {
        await end();
      } catch {
        // The stream was to end, and it has.
      }
      return { done: true as const, value: undefined };
    },
  };
  return { [Symbol.asyncIterator]: () => iterator };
}

const firstWaitMs = 1_000;

/** The given chunks, after waiting at most a second for the first one: rejects with any failure until then, so that it
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
  return toChunks({
    next() {
      const next = first ?? iterator.next();
      first = undefined;
      return next;
    },
    end: () => iterator.return?.(),
  });
}

/** The given chunks; a failure is reported before it is rethrown, unless the reader has disconnected: ending a waiting
 * stream makes it fail. A number of bytes other than `length` is a failure as well, since it would corrupt the
 * following answers on the connection. */
export function watchStream(
  chunks: Chunks,
  length: string | null,
  onError: (error: unknown) => void,
): Chunks {
  const iterator = chunks[Symbol.asyncIterator]();
  // Every comparison with NaN is false.
  let left = length === null ? Number.NaN : Number(length);
  let isOver = false;
  return toChunks({
    async next() {
      try {
        const result = await iterator.next();
        left -= result.value?.length ?? 0;
        if (result.done === true ? left > 0 : left < 0) {
          throw new TypeError(`the stream has not the ${length} bytes of its content-length`);
        }
        return result;
      } catch (error) {
        if (isOver) return { done: true };
        onError(error);
        throw error;
      }
    },
    end() {
      isOver = true;
      return iterator.return?.();
    },
  });
}

/** The stream of an answer as a hook sees it, which can replace it by another one that reads from it. Both end
 * together: a failure of this one is thrown to the reader of the replacement, not to the code that reads here, since a
 * `pipe` would end the process because of it; when the replacement ends, fails or loses its reader, this one is ended
 * too. */
export class ReplaceableStream implements AsyncIterable<Uint8Array> {
  readonly #chunks: Chunks;
  readonly #iterator: AsyncIterator<Uint8Array>;
  #failure: { readonly error: unknown } | undefined;
  #isRead = false;

  constructor(chunks: Chunks) {
    this.#chunks = chunks;
    this.#iterator = chunks[Symbol.asyncIterator]();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    this.#isRead = true;
    return {
      next: async () => {
        try {
          return await this.#iterator.next();
        } catch (error) {
          this.#failure = { error };
          return { done: true, value: undefined };
        }
      },
      return: async () => {
        this.end();
        return { done: true, value: undefined };
      },
    };
  }

  /** Ends the stream, whether or not it was read. */
  end(): void {
    void this.#iterator.return?.();
  }

  /** The stream as it is sent. Throws if it was read. */
  unread(): Chunks {
    if (!this.#isRead) return this.#chunks;
    this.end();
    throw new TypeError('an around has read the stream of an answer, and put nothing in its place');
  }

  /** Throws the failure that was hidden from its reader. */
  throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** The replacement as the answer's body. */
  replacedBy(replacement: AsyncIterable<Uint8Array>): Chunks {
    const iterator = toBody(replacement)[Symbol.asyncIterator]();
    return toChunks({
      next: async () => {
        const result = await iterator.next();
        this.throwFailure();
        if (result.done === true) this.end();
        return result;
      },
      end: () => {
        void iterator.return?.();
        this.end();
      },
    });
  }
}

/** Ends a stream that will not be read. */
export function cancelStream(body: ResponseLike['body']): void {
  if (!isBuffered(body)) void body[Symbol.asyncIterator]().return?.();
}

export function endUnsent({ session, body }: ResponseLike): void {
  session?.abandon();
  cancelStream(body);
}
