// What Envoy protects in a test: answers each request with the headers that it came with.
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface EchoServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** The body of an answer. */
export type Echo = IncomingHttpHeaders;

export async function startEchoServer(): Promise<EchoServer> {
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(request.headers));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
