// Bounds what unfinished requests of clients hold: the bytes of all together, and the time of each. A
// stream without a started request holds nothing, and is never ended by this.
import type { Clock } from '../../shared/clock.ts';

export interface UnfinishedRequests {
  /** Registers the request of one stream; `end` is called when it exceeds a bound. */
  open(end: (reason: string) => void): UnfinishedRequest;
}

export interface UnfinishedRequest {
  /** Call it whenever the held bytes of an incomplete request change; `isNext`: another request was
   * completed since the last call. */
  holds(bytes: number, isNext: boolean): void;
}

export interface UnfinishedRequestsDeps {
  readonly clock: Clock;
  readonly maxBytes: number;
  readonly timeoutMs: number;
}

export function createUnfinishedRequests(deps: UnfinishedRequestsDeps): UnfinishedRequests {
  const shared: Shared = { ...deps, begun: new Set(), totalBytes: 0 };
  return { open: (end) => new Request(shared, end) };
}

interface Shared extends UnfinishedRequestsDeps {
  /** The oldest is first. */
  readonly begun: Set<Request>;
  totalBytes: number;
}

class Request implements UnfinishedRequest {
  readonly #shared: Shared;
  readonly #end: (reason: string) => void;
  /** 0 while there is none. */
  #bytes = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(shared: Shared, end: (reason: string) => void) {
    this.#shared = shared;
    this.#end = end;
  }

  holds(bytes: number, isNext: boolean): void {
    if (this.#bytes > 0 && (isNext || bytes === 0)) this.#forget();
    if (bytes === 0) return;
    if (this.#bytes === 0) this.#begin();
    this.#shared.totalBytes += bytes - this.#bytes;
    this.#bytes = bytes;
    this.#relieve();
  }

  #begin(): void {
    const { begun, clock, timeoutMs } = this.#shared;
    begun.add(this);
    this.#cancelTimer = clock.after(timeoutMs, () =>
      this.#end(`a request was not complete after ${timeoutMs / 1000} s`),
    );
  }

  #forget(): void {
    this.#shared.begun.delete(this);
    this.#shared.totalBytes -= this.#bytes;
    this.#bytes = 0;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  /** The oldest is ended first: trickling bytes gain no time, and a client that sends complete requests is
   * done before others fill the bound. */
  #relieve(): void {
    for (const request of this.#shared.begun) {
      if (this.#shared.totalBytes <= this.#shared.maxBytes) return;
      request.#end('unfinished requests hold too many bytes, and this one is the oldest');
    }
  }
}
