// Code around methods: `around(next, request)` is called for every request below a folder, even if no method answers
// it, and receives the answer to each, including refusals and errors (behaviour: folders).
import { fromResponse } from '../answer/encode.ts';
import { cancelStream, ReplaceableStream, toBody } from '../answer/stream.ts';
import { type MaybePromise, settle, then, toNative } from '../maybe-promise.ts';
import { ListedHeaders } from '../request/listed-headers.ts';
import {
  type Around,
  isBuffered,
  type ResponseLike,
  type RoutedAnswer,
  type RoutedRequest,
  type SessionLike,
} from '../request/request.ts';

/** A request, and what surrounds it; the first around is outermost. */
interface Surrounded {
  readonly arounds: readonly Around[];
  readonly request: RoutedRequest & { end(): void };
}

/** What arounds surround, and how errors are answered. */
export interface Innermost<Resolution> {
  call(resolution: Resolution): MaybePromise<ResponseLike>;
  toResponse(
    resolution: Resolution,
    thrown: unknown,
  ): Promise<{
    readonly response: ResponseLike;
    /** Undefined if the thrown value is not an error, such as a redirect. */
    readonly error?: unknown;
  }>;
  /** Called with the error of the answer that is sent. */
  report(resolution: Resolution, error: unknown, status: number): void;
  finish(resolution: Resolution, response: ResponseLike): MaybePromise<ResponseLike>;
  /** Answers an error of `finish`, or that of an answer which cannot be sent. */
  fail(resolution: Resolution, error: unknown): MaybePromise<ResponseLike>;
}

/** Calls the arounds. Ends answers that no around returned, and the request if an answer was not waited for. */
export function surround<Resolution extends Surrounded>(
  resolution: Resolution,
  innermost: Innermost<Resolution>,
): MaybePromise<ResponseLike> {
  const { arounds, request } = resolution;
  const made: SurroundedAnswer[] = [];
  let unanswered = 0;
  let isOver = false;

  /** Never fails. */
  function run(at: number): MaybePromise<SurroundedAnswer> {
    unanswered += 1;
    if (at < arounds.length) return settle(at, callAround, readReturned, refuse);
    return settle(resolution, innermost.call, addResponse, refuse);
  }

  function callAround(at: number): MaybePromise<unknown> {
    let isCalled = false;
    const next = () => {
      if (isCalled) throw new TypeError('an around calls next() once');
      isCalled = true;
      return Promise.resolve(run(at + 1));
    };
    return toNative<unknown>(arounds[at]?.(next, request));
  }

  function readReturned(_at: number, returned: unknown): SurroundedAnswer {
    if (returned instanceof SurroundedAnswer && made.includes(returned)) {
      unanswered -= 1;
      return returned;
    }
    if (!(returned instanceof Response)) {
      throw new TypeError('an around returns the answer of next(), or a Response');
    }
    return add(SurroundedAnswer.from(returned, request.id, made.at(-1)));
  }

  function refuse(_about: unknown, thrown: unknown): MaybePromise<SurroundedAnswer> {
    return then(
      resolution,
      innermost.toResponse(resolution, thrown),
      (_resolution, { response, error }) => add(new SurroundedAnswer(response, error)),
    );
  }

  function addResponse(_resolution: Resolution, response: ResponseLike): SurroundedAnswer {
    return add(new SurroundedAnswer(response));
  }

  function add(answer: SurroundedAnswer): SurroundedAnswer {
    if (isOver) answer.end();
    else made.push(answer);
    unanswered -= 1;
    return answer;
  }

  function close(_at: number, result: SurroundedAnswer): MaybePromise<ResponseLike> {
    isOver = true;
    if (unanswered > 0) request.end();
    for (const answer of made) if (answer !== result) answer.end();
    const { error, status } = result;
    if (error !== undefined) innermost.report(resolution, error, status);
    return innermost.finish(resolution, result.toResponse());
  }

  return settle(0, run, close, (_at, error) => innermost.fail(resolution, error));
}

/** Headers that a new body makes wrong. */
const ofBytes = ['content-length', 'content-digest', 'repr-digest', 'digest', 'content-md5'];

/** The answer that arounds receive: changing its body keeps its headers consistent, and ends streams that are not
 * sent. */
export class SurroundedAnswer implements RoutedAnswer {
  status: number;
  readonly headers: ListedHeaders;
  readonly error: unknown;
  readonly #session: SessionLike | undefined;
  #body: string | Uint8Array | ReplaceableStream | undefined;
  /** The length header that fits the body. */
  #length: string | null;

  constructor({ status, headers, body, session }: ResponseLike, error?: unknown) {
    this.status = status;
    this.headers = new ListedHeaders(headers);
    this.error = error;
    this.#session = session;
    this.#body = isBuffered(body) ? body : new ReplaceableStream(body);
    this.#length = this.headers.get('content-length');
  }

  /** Replaces `replaced`, whose error it retains for the log, and whose stream it may read: both end together. */
  static from(
    response: Response,
    requestId: string,
    replaced: SurroundedAnswer | undefined,
  ): SurroundedAnswer {
    const converted = fromResponse(response, undefined, requestId);
    const answer = new SurroundedAnswer(converted, replaced?.error);
    const stream = replaced?.body;
    if (replaced !== undefined && stream instanceof ReplaceableStream) {
      replaced.#body = undefined;
      if (isBuffered(converted.body)) stream.end();
      else answer.#body = new ReplaceableStream(stream.replacedBy(converted.body));
    }
    // With the headers of the replaced answer, `new Response(page, answer)`, it would have that answer's length.
    answer.#length = null;
    return answer;
  }

  get body(): ResponseLike['body'] {
    return this.#body;
  }

  /** Throws if the body cannot be sent, and rethrows the error of a stream that failed while it was read. */
  set body(body: unknown) {
    if (body === this.body) return;
    const replaced = this.#body instanceof ReplaceableStream ? this.#body : undefined;
    if (body === undefined || typeof body === 'string' || body instanceof Uint8Array) {
      replaced?.throwFailure();
      replaced?.end();
      this.#body = body;
    } else if (typeof body === 'object' && body !== null && Symbol.asyncIterator in body) {
      const stream = body as AsyncIterable<Uint8Array>;
      this.#body = new ReplaceableStream(replaced?.replacedBy(stream) ?? toBody(stream));
    } else {
      throw new TypeError('the body of an answer is a text, bytes, a stream or undefined');
    }
    for (const name of ofBytes) this.headers.delete(name);
    this.#length = null;
    const tag = this.headers.get('etag');
    if (body !== undefined && tag?.startsWith('"')) this.headers.set('etag', `W/${tag}`);
  }

  /** Throws if the stream was read, and can no longer be sent. */
  toResponse(): ResponseLike {
    const { status, headers } = this;
    const session = status === 101 ? this.#session : undefined;
    if (session === undefined) this.#session?.abandon();
    const body = this.#body instanceof ReplaceableStream ? this.#body.unread() : this.#body;
    if (this.#length === null || headers.get('content-length') !== this.#length) {
      if (body === undefined || !isBuffered(body)) headers.delete('content-length');
      else headers.set('content-length', String(Buffer.byteLength(body)));
    }
    const response = { status, headers: headers.list, body };
    return session === undefined ? response : { ...response, session };
  }

  /** Ends the answer without sending it. */
  end(): void {
    this.#session?.abandon();
    cancelStream(this.#body);
  }
}
