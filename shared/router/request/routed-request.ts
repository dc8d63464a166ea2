// The request as controllers and guards see it, made once per request. What most of them never ask for is made when
// it is asked for.
import type { RequestLike, RoutedRequest } from './request.ts';

export class Routing implements RoutedRequest {
  readonly id: string;
  readonly method: string;
  readonly headers: Headers;
  readonly remoteAddress: string | undefined;
  /** Set when the target has been read. */
  path = '';
  readonly #given: RequestLike;
  #abort: AbortController | undefined;
  #isOver = false;

  constructor(given: RequestLike, id: string) {
    this.id = id;
    this.method = given.isUpgrade === true ? 'CONNECT' : given.method;
    this.headers = given.headers;
    this.remoteAddress = given.remoteAddress;
    this.#given = given;
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

  /** Aborts the signal: nobody waits any more. */
  end(): void {
    this.#isOver = true;
    this.#abort?.abort();
  }
}
