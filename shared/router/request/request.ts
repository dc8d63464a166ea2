// Requests and responses, independent of the server that carries them: as a mount hands them over, and as a controller sees
// them. Most controllers read little, so what costs is made when it is asked for.
import { randomBytes } from 'node:crypto';
import type { MaybePromise } from '../maybe-promise.ts';
import { type HeaderList, ListedHeaders } from './listed-headers.ts';
import { toPath, toUnparsedPath } from './target.ts';

/** A request as a mount hands it over. */
export interface RequestLike {
  readonly method: string;
  /** As received, still percent-encoded: `/a/b?c=d`, an absolute URL, or `*`. */
  readonly target: string;
  readonly headers: Headers;
  /** Read at most once; undefined where the request has none. The mount drains or cuts what is unread at
   * the answer; returning the iterator cuts nothing. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
  /** Set where the client waits to be asked for its body; called before it is read. */
  readonly askForBody?: (() => void) | undefined;
  /** The socket's peer; forwarding headers are for `trustedProxies`. */
  readonly remoteAddress: string | undefined;
  /** Default: http. */
  readonly scheme?: 'http' | 'https' | undefined;
  /** Aborted when the client has gone before the end of its answer. Absent where the server does not report it. */
  readonly signal?: (() => AbortSignal) | undefined;
  /** The client asks for a WebSocket, which the mount can open. */
  readonly isUpgrade?: boolean;
}

/** A response for a mount to send. */
export interface ResponseLike {
  readonly status: number;
  readonly headers: HeaderList;
  /** A text is sent as UTF-8. The sender owns a stream: it reads it to its end, or returns its iterator. */
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** For the answer to `isUpgrade`: the mount opens a WebSocket for it. */
  readonly session?: SessionLike;
}

/** A WebSocket's life as a mount begins it. */
export interface SessionLike {
  /** Once, when the handshake is done. */
  open(connection: Connection): void;
  /** Where there was no handshake after CONNECT. */
  abandon(): void;
  /** The chosen subprotocol; empty for none. */
  readonly protocol: string;
}

/** The parts that are used of a `WebSocket` of the package `ws`, whose types an application on the router need not have. */
export interface Connection {
  /** Bytes that wait to be sent. */
  readonly bufferedAmount: number;
  on(event: 'ping' | 'pong' | 'error', listener: () => void): unknown;
  on(event: 'message', listener: (data: Uint8Array, isBinary: boolean) => void): unknown;
  once(event: 'close', listener: (code: number, reason: { toString(): string }) => void): unknown;
  send(data: string | Uint8Array, onSent: () => void): void;
  close(code?: number, reason?: string): void;
  terminate(): void;
  ping(): void;
  pause(): void;
  resume(): void;
}

/** Statuses whose answers never have a body. */
export const withoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

/** Whether a body is there as a whole. */
export function isWhole(body: ResponseLike['body']): body is string | Uint8Array | undefined {
  return body === undefined || typeof body === 'string' || body instanceof Uint8Array;
}

/** For the headers that a reader wants one by one. */
export function toHeaders(list: HeaderList): Headers {
  const headers = new Headers();
  for (let at = 0; at < list.length; at += 2) headers.append(list[at] ?? '', list[at + 1] ?? '');
  return headers;
}

/** The request as controllers and guards see it: no body, no unparsed arguments. */
export interface RoutedRequest {
  /** Sent as `X-Request-Id` and logged; the client's own where it is well-formed. */
  readonly id: string;
  readonly method: string;
  /** The resolved path, each part encoded again: safe to log. */
  readonly path: string;
  /** As received, still encoded, with its query. */
  readonly target: string;
  readonly headers: Headers;
  /** The peer of the connection, or the client before `trustedProxies`. */
  readonly remoteAddress: string | undefined;
  /** Scheme and host that were asked, such as `https://shop.example`: by the target or the `Host` header, which any client can choose. */
  readonly origin: string;
  /** Aborted when no client waits for the answer any more: the client has gone, its events or its socket have ended,
   * or its time is up. */
  readonly signal: AbortSignal;
  /** Facts that guards and folders have found out, such as the user; `this.state` of a controller. */
  readonly state: Record<string, unknown>;
}

/** The parts of its answer that a method may set before it returns. */
export interface ResponseDraft {
  /** Unset: 200, or 204 without a value. */
  status: number | undefined;
  readonly headers: Headers;
  /** A type without `json` in it sends the value as plain text. Unset: by the kind of value. */
  mediaType: string | undefined;
}

/** An answer before it is sent; all of it can be changed. */
export interface RoutedAnswer {
  status: number;
  readonly headers: Headers;
  /** A new one sets `content-length`, and makes a strong `etag` a weak one. A stream may read from the one that it
   * replaces: both end together. */
  body: ResponseLike['body'];
  /** What was thrown, where this is the answer to an error. */
  readonly error: unknown;
}

/** `next` can be called once, and never rejects: what is thrown below is an answer with an `error`. Returned is its
 * answer, or a `Response` in its place; what is thrown is answered instead. An answer that is not returned is ended, and
 * the request's signal is aborted where it was not waited for. */
export type Around = (
  next: () => Promise<RoutedAnswer>,
  request: RoutedRequest,
) => Promise<RoutedAnswer | Response> | RoutedAnswer | Response;

/** Never fails. An answer that waits for nothing is there at once: each promise on the way costs more than a step. */
export type Dispatch = (request: RequestLike) => MaybePromise<ResponseLike>;

/** An id has 16 random bytes, as that of a trace. */
const idDigits = 32;
const idsAtOnce = 256;

/** Ids for requests that bring none. `randomUUID` gives texts of twenty pieces, which are joined when they are sent: a
 * twentieth of a small answer. */
export class RequestIds {
  #digits = '';
  #at = 0;

  next(): string {
    if (this.#at === this.#digits.length) {
      this.#digits = randomBytes((idsAtOnce * idDigits) / 2).toString('hex');
      this.#at = 0;
    }
    this.#at += idDigits;
    return this.#digits.slice(this.#at - idDigits, this.#at);
  }
}

/** An absolute target goes before the header (RFC 9112 section 3.2.2). */
const hostOfTarget = /^https?:\/\/(?:[^/?#@]*@)?([^/?#@]+)/i;
const wellFormedId = /^[A-Za-z0-9._-]{1,64}$/;

export class LazyRequest implements RoutedRequest {
  readonly id: string;
  readonly method: string;
  readonly #given: RequestLike;
  #parts: readonly string[] | undefined;
  #state: Record<string, unknown> | undefined;
  #abort: AbortController | undefined;
  #isOver = false;

  constructor(given: RequestLike, ids: RequestIds) {
    const asked = given.headers.get('x-request-id');
    this.id = asked !== null && wellFormedId.test(asked) ? asked : ids.next();
    this.method = given.isUpgrade === true ? 'CONNECT' : given.method;
    this.#given = given;
  }

  /** Known once the target is parsed. */
  setParts(parts: readonly string[]): void {
    this.#parts = parts;
  }

  get target(): string {
    return this.#given.target;
  }

  get origin(): string {
    const { headers, target, scheme = 'http' } = this.#given;
    const host = hostOfTarget.exec(target)?.[1] ?? headers.get('host') ?? 'localhost';
    return `${scheme}://${host}`;
  }

  get remoteAddress(): string | undefined {
    return this.#given.remoteAddress;
  }

  get path(): string {
    return this.#parts === undefined ? toUnparsedPath(this.#given.target) : toPath(this.#parts);
  }

  get headers(): Headers {
    return this.#given.headers;
  }

  get state(): Record<string, unknown> {
    this.#state ??= {};
    return this.#state;
  }

  get signal(): AbortSignal {
    if (this.#abort !== undefined) return this.#abort.signal;
    const abort = new AbortController();
    this.#abort = abort;
    const gone = this.#given.signal?.();
    if (this.#isOver || gone?.aborted === true) abort.abort();
    gone?.addEventListener('abort', () => abort.abort(), { once: true });
    return abort.signal;
  }

  /** Aborts the signal: no client waits any more. */
  end(): void {
    this.#isOver = true;
    this.#abort?.abort();
  }
}

export class LazyDraft implements ResponseDraft {
  status: number | undefined;
  mediaType: string | undefined;
  readonly #ofRoute: string | undefined;
  #headers: Headers | undefined;

  constructor(mediaType: string | undefined) {
    this.status = undefined;
    this.mediaType = mediaType;
    this.#ofRoute = mediaType;
  }

  /** The media type that the method has chosen, by the field or by the header. Throws where these are two. */
  get chosenType(): string | undefined {
    const { mediaType } = this;
    const header = this.#headers?.get('content-type') ?? undefined;
    if (header === undefined || header === mediaType) return mediaType;
    if (mediaType === this.#ofRoute) return header;
    throw new TypeError(
      `the header content-type is ${header}, and response.mediaType ${mediaType}; set one of them`,
    );
  }

  get headers(): Headers {
    this.#headers ??= new ListedHeaders();
    return this.#headers;
  }

  /** Undefined where the method has set none. */
  get setHeaders(): Headers | undefined {
    return this.#headers;
  }
}
