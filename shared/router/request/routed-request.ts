// The request as a controller sees it, and the answer as it may set it. Most read little of these, so what costs is
// made when it is asked for.
import { randomUUID } from 'node:crypto';
import { ListedHeaders } from './listed-headers.ts';
import type { RequestLike, ResponseDraft, RoutedRequest } from './request.ts';
import { toPath, toUnparsedPath } from './target.ts';

const wellFormedId = /^[A-Za-z0-9._-]{1,64}$/;

export class LazyRequest implements RoutedRequest {
  readonly id: string;
  readonly method: string;
  readonly #given: RequestLike;
  #parts: readonly string[] | undefined;
  #state: Record<string, unknown> | undefined;
  #abort: AbortController | undefined;
  #isOver = false;

  constructor(given: RequestLike) {
    const asked = given.headers.get('x-request-id');
    this.id = asked !== null && wellFormedId.test(asked) ? asked : randomUUID();
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
    const { headers, scheme = 'http' } = this.#given;
    return `${scheme}://${headers.get('host') ?? 'localhost'}`;
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
