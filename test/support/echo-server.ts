// What Envoy protects in a test: answers each request with the headers that it came with.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { listenFor } from './listen.ts';
import type { Owner } from './owner.ts';

/** The body of an answer. */
export type Echo = IncomingHttpHeaders;

/** Gives its port. */
export function startEchoServer(t: Owner): Promise<number> {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(request.headers));
  });
  return listenFor(t, server);
}
