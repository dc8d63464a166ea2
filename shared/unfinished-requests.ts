// What clients make us hold by not finishing the requests that they have begun: so many bytes of all of them
// together, and each for a time. A stream on which no request is begun holds nothing, and never ends by this.
import type { Clock } from './clock.ts';

export interface UnfinishedRequests {
  /** For one stream; `end` is called when its request is not waited for any longer. */
  open(end: (reason: string) => void): UnfinishedRequest;
}

export interface UnfinishedRequest {
  /** How many bytes are held of a request that is not whole, whenever that changes; `isNext`: another one
   * has been completed since the last call. */
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
  /** The one that was begun first is the first. */
  const requests = new Set<Begun>();
  let totalBytes = 0;

  /** By when they were begun: bytes that trickle in buy no time, and who sends a whole request is done
   * before others have filled up what there is. */
  function relieve(): void {
    for (const { end } of requests) {
      if (totalBytes <= maxBytes) return;
      end('too much is held of unfinished requests, and this one was begun before all others');
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
