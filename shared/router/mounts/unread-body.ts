// A request that is answered before its body has been read: the rest is read and dropped for a
// moment, so that the peer sees the answer and not a reset, and then the connection is cut.
import type { IncomingMessage, ServerResponse } from 'node:http';

const graceMs = 1_000;

/** To be called before the answer is sent. */
export function endUnread(request: IncomingMessage, response: ServerResponse): void {
  if (request.complete) return;
  response.once('finish', () => {
    if (request.complete) return;
    request.resume();
    const timer = setTimeout(() => request.destroy(), graceMs);
    timer.unref();
    request.once('close', () => clearTimeout(timer));
    request.once('end', () => clearTimeout(timer));
  });
}
