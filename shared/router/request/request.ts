// Requests and responses, independent of the server: as a mount passes them on, and as a controller sees them. Most
// controllers read little, so expensive values are created on first use.
import { randomBytes } from 'node:crypto';
import { BadRequest } from '../errors.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { type HeaderList, ListedHeaders } from './listed-headers.ts';
import { toPath, toUnparsedPath } from './target.ts';

/** A request as a mount hands it over. */
export interface RequestLike {
  readonly method: string;
  /** As received, still percent-encoded: `/a/b?c=d`, an absolute URL, or `*`. */
  readonly target: string;
  readonly headers: Headers;
  /** Read at most once; undefined if the request has none. The mount drains or cuts off the unread rest once the answer
   * is sent; returning the iterator cuts nothing off. */
  readonly body: AsyncIterable<Uint8Array> | undefined;
  /** Set if the client waits for a request to send its body; called before the body is read. */
  readonly askForBody?: (() => void) | undefined;
  /** The socket's peer; `trustedProxies` decides whether forwarding headers count. */
  readonly remoteAddress: string | undefined;
  /** Default: http. */
  readonly scheme?: 'http' | 'https' | undefined;
  /** Aborted when the client disconnects before the end of its answer. Absent if the server does not report it. */
  readonly signal?: (() => AbortSignal) | undefined;
  /** Whether the client requests a WebSocket that the mount can open. */
  readonly isUpgrade?: boolean;
}

/** A response for a mount to send. */
export interface ResponseLike {
  readonly status: number;
  readonly headers: HeaderList;
  /** A text is sent as UTF-8. The sender owns a stream: it reads the stream to its end, or returns its iterator. */
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
  /** Set on the answer to `isUpgrade`: the mount opens a WebSocket for it. */
  readonly session?: SessionLike;
}

/** The callbacks of a WebSocket, for a mount. */
export interface SessionLike {
  /** Called once, when the handshake is complete. */
  open(connection: Connection): void;
  /** Called if no handshake followed CONNECT. */
  abandon(): void;
  /** The chosen subprotocol; empty for none. */
  readonly protocol: string;
}

/** The used parts of a `WebSocket` of the package `ws`, whose types an application of the router need not have
 * installed. */
export interface Connection {
  /** Bytes waiting to be sent. */
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

/** Whether the body is complete in memory. */
export function isBuffered(body: ResponseLike['body']): body is string | Uint8Array | undefined {
  return body === undefined || typeof body === 'string' || body instanceof Uint8Array;
}

/** For readers of single headers. */
export function toHeaders(list: HeaderList): Headers {
  const headers = new Headers();
  for (let at = 0; at < list.length; at += 2) headers.append(list[at] ?? '', list[at + 1] ?? '');
  return headers;
}

/** The request as controllers and guards see it: no body, no unparsed arguments. */
export interface RoutedRequest {
  /** Sent as `X-Request-Id` and logged; the client's own id if it is well-formed. */
  readonly id: string;
  readonly method: string;
  /** The resolved path, each part encoded again: safe to log. */
  readonly path: string;
  /** As received, still encoded, with its query. */
  readonly target: string;
  readonly headers: Headers;
  /** The peer of the connection, or the client before `trustedProxies`. */
  readonly remoteAddress: string | undefined;
  /** The requested scheme and host, such as `https://shop.example`: from the target or the `Host` header, which any
   * client can choose. Throws 400 if that is not a host. */
  readonly origin: string;
  /** Aborted when the client no longer waits for the answer: the client has disconnected, its events or its socket have
   * ended, or the time limit has passed. */
  readonly signal: AbortSignal;
  /** Facts that guards and folders have determined, such as the user; `this.state` of a controller. */
  readonly state: Record<string, unknown>;
}

/** The parts of its answer that a method may set before it returns. */
export interface ResponseDraft {
  /** Unset: 200, or 204 without a value. */
  status: number | undefined;
  readonly headers: Headers;
  /** A type that does not contain `json` sends the value as plain text. Unset: depends on the kind of value. */
  mediaType: string | undefined;
}

/** An answer before it is sent; all of it can be changed. */
export interface RoutedAnswer {
  status: number;
  readonly headers: Headers;
  /** Setting a new body sets `content-length`, and makes a strong `etag` weak. A stream can read from the one that it
   * replaces: both end together. */
  body: ResponseLike['body'];
  /** The thrown value, if this is the answer to an error. */
  readonly error: unknown;
}

/** `next` can be called once, and never rejects: if the inner code throws, the answer has an `error`. Returns the
 * answer of `next`, or a `Response` that replaces it; if the around throws, the error is answered instead. An answer
 * that is not returned is ended, and the request's signal is aborted if the answer was not waited for. */
export type Around = (
  next: () => Promise<RoutedAnswer>,
  request: RoutedRequest,
) => Promise<RoutedAnswer | Response> | RoutedAnswer | Response;

/** Never fails. Returns synchronously if nothing must be waited for: each promise on the way costs more than a step. */
export type Dispatch = (request: RequestLike) => MaybePromise<ResponseLike>;

/** An id has 16 random bytes, like that of a trace. */
const idDigits = 32;
const idsAtOnce = 256;

/** Ids for requests without one. `randomUUID` returns texts of twenty pieces, which are joined when they are sent: that
 * is a twentieth of the cost of a small answer. */
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

/** An absolute target takes precedence over the header (RFC 9112 section 3.2.2). */
const hostOfTarget = /^https?:\/\/(?:[^/?#@]*@)?([^/?#@]+)/i;
export const hostForm = /^(?:\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::\d*)?$/;
const wellFormedId = /^[A-Za-z0-9._-]{1,64}$/;

export class LazyRequest implements RoutedRequest {
  readonly id: string;
  /** `CONNECT` once the request is known to open a WebSocket. */
  method: string;
  readonly #given: RequestLike;
  #parts: readonly string[] | undefined;
  #state: Record<string, unknown> | undefined;
  #abort: AbortController | undefined;
  #isOver = false;

  constructor(given: RequestLike, ids: RequestIds) {
    const asked = given.headers.get('x-request-id');
    this.id = asked !== null && wellFormedId.test(asked) ? asked : ids.next();
    this.method = given.method;
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
    const host = (hostOfTarget.exec(target)?.[1] ?? headers.get('host')) || 'localhost';
    if (!hostForm.test(host)) throw new BadRequest('the Host header is not one host');
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

  /** Aborts the signal: the client no longer waits for the answer. */
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

  /** The media type that the method has chosen, by the field or by the header. Throws if the two differ. */
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

  /** Undefined if the method has set none. */
  get setHeaders(): Headers | undefined {
    return this.#headers;
  }
}
