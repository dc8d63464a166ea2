// Limits the total bytes of all request bodies being read. Any caller can send a webhook body, which is read before its
// signature can be checked.
import type { IncomingMessage } from 'node:http';
import { HttpError } from '../../../shared/router/index.ts';
import type { UnfinishedRequests } from '../unfinished-requests.ts';

/** Passes the body on and counts it while it is read. Throws 503 when it is dropped to make room for others. */
export async function* countBody(
  body: AsyncIterable<Uint8Array>,
  unfinished: UnfinishedRequests,
): AsyncIterable<Uint8Array> {
  const ended = Promise.withResolvers<never>();
  // The rejection may have no handler.
  ended.promise.catch(() => {});
  const held = unfinished.open((reason) => {
    held.holds(0, false);
    ended.reject(new HttpError(503, { detail: reason, headers: { 'retry-after': '1' } }));
  });
  const iterator = body[Symbol.asyncIterator]();
  let bytes = 0;
  try {
    while (true) {
      const next = await Promise.race([iterator.next(), ended.promise]);
      if (next.done === true) return;
      bytes += next.value.byteLength;
      held.holds(bytes, false);
      yield next.value;
    }
  } finally {
    held.holds(0, false);
    // Not awaited: `return` on a stalled body would wait as well.
    iterator.return?.().catch(() => {});
  }
}

/** Counts the bytes of a body that another reader buffers, up to that reader's `maxBytes`; the connection is cut if the
 * body is dropped to make room. */
export function watchBody(
  request: IncomingMessage,
  maxBytes: number,
  unfinished: UnfinishedRequests,
): void {
  const held = unfinished.open(() => {
    held.holds(0, false);
    request.destroy();
  });
  let bytes = 0;
  request.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    held.holds(bytes > maxBytes ? 0 : bytes, false);
  });
  request.once('end', () => held.holds(0, false));
  request.once('close', () => held.holds(0, false));
}
