// Handles requests that are answered before their body has been read: the rest is read and dropped for a
// short time, so that the peer sees the answer and not a reset, then the connection is cut.
import type { IncomingMessage, ServerResponse } from 'node:http';

const graceMs = 1_000;

/** For a request that is not complete, before the answer is sent. */
export function endUnread(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => {
    if (request.complete) return;
    request.resume();
    const timer = setTimeout(() => request.destroy(), graceMs);
    timer.unref();
    request.once('close', () => clearTimeout(timer));
    request.once('end', () => clearTimeout(timer));
  });
}
