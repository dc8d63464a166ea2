// Bounds what unfinished requests of clients hold: the bytes of all together, and the time of each. A
// stream without a started request holds nothing, and is never ended by this.
import type { Clock } from './clock.ts';

export interface UnfinishedRequests {
  /** For one stream; `end` is called when its request exceeds a bound. */
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

interface Begun {
  bytes: number;
  readonly end: (reason: string) => void;
}

export function createUnfinishedRequests({
  clock,
  maxBytes,
  timeoutMs,
}: UnfinishedRequestsDeps): UnfinishedRequests {
  /** The oldest is first. */
  const requests = new Set<Begun>();
  let totalBytes = 0;

  /** The oldest is ended first: trickling bytes gain no time, and a client that sends complete requests is
   * done before others fill the bound. */
  function relieve(): void {
    for (const { end } of requests) {
      if (totalBytes <= maxBytes) return;
      end('unfinished requests hold too many bytes, and this one is the oldest');
    }
  }

  return {
    open(end) {
      let request: Begun | undefined;
      let cancelTimer: (() => void) | undefined;

      function begin(): Begun {
        const begun = { bytes: 0, end };
        requests.add(begun);
        cancelTimer = clock.after(timeoutMs, () =>
          end(`a request was not complete after ${timeoutMs / 1000} s`),
        );
        return begun;
      }

      function forget(begun: Begun): void {
        requests.delete(begun);
        totalBytes -= begun.bytes;
        request = undefined;
        cancelTimer?.();
        cancelTimer = undefined;
      }

      return {
        holds(bytes, isNext) {
          if (request !== undefined && (isNext || bytes === 0)) forget(request);
          if (bytes === 0) return;
          request ??= begin();
          totalBytes += bytes - request.bytes;
          request.bytes = bytes;
          relieve();
        },
      };
    },
  };
}
