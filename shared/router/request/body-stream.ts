// A body that its method reads while it arrives, for a method with `stream`: memory only holds the chunk that the
// method has not read yet, and the client is read as fast as the method reads (behaviour: streamed-bodies).
import { Readable } from 'node:stream';
import { BadRequest, bodyTooLarge, HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import type { MediaType } from './media-type.ts';
import { type BodyPart, readParts } from './multipart.ts';
import type { RequestLike } from './request.ts';

interface BodyStreamOptions {
  /** Undefined if the request has no valid Content-Type. */
  readonly type: MediaType | undefined;
  readonly limits: Limits;
  readonly askForBody?: RequestLike['askForBody'];
}

/** Chunks of a body, readable once: `for await (const chunk of body)`, `pipeline(body, createWriteStream(path))`.
 * Reading throws 413 above `bodyBytes`, 408 if waiting for the client takes more than `bodyTimeoutMs` in total, and 400
 * if the body is incomplete. */
export class BodyStream implements AsyncIterable<Uint8Array> {
  readonly #body: AsyncIterable<Uint8Array> | undefined;
  readonly #options: BodyStreamOptions;
  #isRead = false;

  constructor(body: AsyncIterable<Uint8Array> | undefined, options: BodyStreamOptions) {
    this.#body = body;
    this.#options = options;
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    return this.#read(undefined);
  }

  async *#read(isLeft: AbortSignal | undefined): AsyncGenerator<Uint8Array, void> {
    if (this.#isRead) throw new TypeError('a streamed body is read once');
    this.#isRead = true;
    const { limits, askForBody } = this.#options;
    if (this.#body === undefined) return;
    askForBody?.();
    yield* readChunks(this.#body, limits, isLeft);
  }

  /** The parts of a `multipart/form-data` body, one after the other. Each must be read before the next one is
   * requested, which drops the unread rest. Throws 415 for another type of body. */
  parts(): AsyncGenerator<BodyPart, void> {
    const { type, limits } = this.#options;
    if (type?.essence !== 'multipart/form-data') {
      throw new HttpError(415, { detail: 'a body must be multipart' });
    }
    const left = new AbortController();
    return readParts(type, { chunks: this.#read(left.signal), leave: () => left.abort() }, limits);
  }
}

/** Ends when its reader disconnects, even while it waits for the client; the rest stays unread. Throws 413, 408, and 400 for
 * an incomplete body. */
export async function* readChunks(
  body: AsyncIterable<Uint8Array>,
  { bodyBytes, bodyTimeoutMs }: Pick<Limits, 'bodyBytes' | 'bodyTimeoutMs'>,
  isLeft?: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  const iterator = iterate(body);
  let bytes = 0;
  let leftMs = bodyTimeoutMs;
  try {
    while (true) {
      const before = performance.now();
      const { done, value } = await arrival(iterator.next(), leftMs, isLeft);
      // Only time spent waiting for the client counts, not the time between two reads.
      leftMs -= performance.now() - before;
      if (done === true) return;
      bytes += value.byteLength;
      if (bytes > bodyBytes) throw bodyTooLarge(bodyBytes);
      yield value;
    }
  } finally {
    // The mount drops the rest, but only once it has no reader. Not awaited: an iterator that waits for the client
    // would block this, too.
    iterator.return?.().catch(() => {});
  }
}

/** An iterator that cuts nothing off when it is left: the mount still has to answer. */
function iterate(body: AsyncIterable<Uint8Array>): AsyncIterator<Uint8Array> {
  return body instanceof Readable
    ? body.iterator({ destroyOnReturn: false })
    : body[Symbol.asyncIterator]();
}

/** Waits at most this long, then rejects with 408; rejects with 400 if the body is incomplete. Ends if the reader has
 * left. */
function arrival<Value>(
  next: Promise<IteratorResult<Value>>,
  timeoutMs: number,
  isLeft: AbortSignal | undefined,
): Promise<IteratorResult<Value>> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new HttpError(408, { detail: 'the body did not arrive in time' }));
    const isBounded = timeoutMs !== Number.POSITIVE_INFINITY;
    const timer = isBounded ? setTimeout(late, Math.max(0, timeoutMs)) : undefined;
    const leave = () => settle(() => resolve({ done: true, value: undefined }));
    const settle = (how: () => void) => {
      clearTimeout(timer);
      isLeft?.removeEventListener('abort', leave);
      how();
    };
    isLeft?.addEventListener('abort', leave);
    next.then(
      (result) => settle(() => resolve(result)),
      (error) =>
        settle(() =>
          reject(error instanceof HttpError ? error : new BadRequest('the body broke off')),
        ),
    );
  });
}
