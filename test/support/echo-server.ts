// The service that Envoy protects in a test: answers each request with the request's headers.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { listenFor } from './listen.ts';
import type { Owner } from './owner.ts';

/** The body of an answer. */
export type Echo = IncomingHttpHeaders;

/** Returns its port. */
export function startEchoServer(t: Owner): Promise<number> {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(request.headers));
  });
  return listenFor(t, server);
}
