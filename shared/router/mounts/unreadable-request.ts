// Requests that the HTTP parser refuses never reach the application. They get the same kind of
// answer: 501 for a method that the parser does not know, 400, 408 and 431 for the rest.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import { HttpError, NotImplemented } from '../errors.ts';
import { toErrorResponse } from '../problem.ts';
import type { ResponseLike } from '../request.ts';

export interface UnreadableRequests {
  /** For the server's `request` event. */
  readonly track: (request: IncomingMessage, response: ServerResponse) => void;
  /** For the server's `clientError` event: answers and closes. A connection on which an answer is
   * under way is only closed. */
  readonly answer: (error: Error, socket: Duplex) => void;
}

export function createUnreadableRequests(): UnreadableRequests {
  const answering = new WeakMap<Duplex, number>();
  const count = (socket: Duplex, by: number) => {
    answering.set(socket, (answering.get(socket) ?? 0) + by);
  };
  return {
    track({ socket }, response) {
      count(socket, 1);
      response.once('close', () => count(socket, -1));
    },
    answer(error, socket) {
      if (!socket.writable || (answering.get(socket) ?? 0) > 0) socket.destroy();
      else writeRaw(socket, toErrorResponse(toHttpError(error), randomUUID()));
    },
  };
}

/** Writes a whole answer and closes. */
export function writeRaw(socket: Duplex, { status, headers, body }: ResponseLike): void {
  socket.on('error', () => socket.destroy());
  const lines = [`HTTP/1.1 ${status} `, 'connection: close'];
  for (const [name, value] of headers) lines.push(`${name}: ${value}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  socket.end(body instanceof Uint8Array ? body : undefined);
}

function toHttpError(error: Error): HttpError {
  const code = 'code' in error ? error.code : undefined;
  if (code === 'HPE_INVALID_METHOD') return new NotImplemented();
  if (code === 'HPE_HEADER_OVERFLOW') return new HttpError(431);
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new HttpError(408);
  return new HttpError(400, { detail: 'the request cannot be read' });
}
