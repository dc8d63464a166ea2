// A body that its method reads while it arrives, of a method with `stream`: never more of it is in memory than the
// method has not taken yet, and a client is read from as fast as the method reads (behaviour: streamed-bodies).
import { Readable } from 'node:stream';
import { BadRequest, bodyTooLarge, HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import type { BodyPart } from './body-part.ts';
import type { MediaType } from './media-type.ts';
import { readParts } from './multipart.ts';
import type { RequestLike } from './request.ts';

export type { BodyPart } from './body-part.ts';

interface BodyStreamOptions {
  /** Undefined where the request has no Content-Type, or none that can be read. */
  readonly type: MediaType | undefined;
  readonly limits: Limits;
  readonly askForBody?: RequestLike['askForBody'];
}

/**
 * Chunks of a body, once: `for await (const chunk of body)`, `pipeline(body, createWriteStream(path))`. Reading throws
 * 413 above `bodyBytes`, 408 when the client lets wait for longer than `bodyTimeoutMs` in all, and 400 when it breaks off.
 */
export class BodyStream implements AsyncIterable<Uint8Array> {
  readonly #body: AsyncIterable<Uint8Array> | undefined;
  readonly #options: BodyStreamOptions;
  #isTaken = false;

  constructor(body: AsyncIterable<Uint8Array> | undefined, options: BodyStreamOptions) {
    this.#body = body;
    this.#options = options;
  }

  [Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void> {
    return this.#read(undefined);
  }

  async *#read(isLeft: AbortSignal | undefined): AsyncGenerator<Uint8Array, void> {
    if (this.#isTaken) throw new TypeError('a streamed body is read once');
    this.#isTaken = true;
    const { limits, askForBody } = this.#options;
    if (this.#body === undefined) return;
    askForBody?.();
    yield* readChunks(this.#body, limits, isLeft);
  }

  /**
   * The parts of a `multipart/form-data` body, one after the other, each to be read before the next one is asked for:
   * what is left of a part is dropped then. Throws 415 for another type of body.
   */
  parts(): AsyncGenerator<BodyPart, void> {
    const { type, limits } = this.#options;
    if (type?.essence !== 'multipart/form-data') {
      throw new HttpError(415, { detail: 'a body must be multipart' });
    }
    const left = new AbortController();
    return readParts(type, { chunks: this.#read(left.signal), leave: () => left.abort() }, limits);
  }
}

/** Ends when it has no reader any more, also while it waits for the client; what is left stays unread. Throws 413, 408, and
 * 400 for a body that breaks off. */
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
      // Only the time in which the client lets wait counts, not what is done between two chunks.
      leftMs -= performance.now() - before;
      if (done === true) return;
      bytes += value.byteLength;
      if (bytes > bodyBytes) throw bodyTooLarge(bodyBytes);
      yield value;
    }
  } finally {
    // Its mount drops the rest, but not while it has a reader. Not awaited: one that waits for the client would wait, too.
    iterator.return?.().catch(() => {});
  }
}

/** One that cuts nothing when it is left: the mount still has to answer. */
function iterate(body: AsyncIterable<Uint8Array>): AsyncIterator<Uint8Array> {
  return body instanceof Readable
    ? body.iterator({ destroyOnReturn: false })
    : body[Symbol.asyncIterator]();
}

/** Waits no longer than that: rejects with 408 then, and with 400 where nothing more will come. It is the end where the
 * reader has left. */
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
