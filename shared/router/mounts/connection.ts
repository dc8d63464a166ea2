// What ends on the connection itself. Requests that the HTTP parser refuses, which never reach the application, are
// answered in the same format: 501 for a method that the parser does not know, 400, 408 or 431 for the rest. If a body
// is left unread, its rest is read and dropped for a short time, so that the peer receives the answer and not a reset;
// then the connection is closed.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Duplex, pipeline, Readable } from 'node:stream';
import { toErrorResponse } from '../answer/problem.ts';
import { HttpError, NotImplemented } from '../errors.ts';
import { isWhole, type ResponseLike } from '../request/request.ts';

/** Answers of a connection that have not been sent completely. */
const answersOf = new WeakMap<Duplex, Set<ServerResponse>>();

/** For a server's `request` event, or before an answer is sent in pieces. */
export function trackAnswer({ socket }: IncomingMessage, response: ServerResponse): void {
  const answers = answersOf.get(socket) ?? new Set();
  answersOf.set(socket, answers.add(response));
  response.once('close', () => answers.delete(response));
}

/** For the server's `clientError` event: answers and closes. In the middle of an answer it only closes. */
export function answerUnreadable(error: Error, socket: Duplex): void {
  const isAnswering = [...(answersOf.get(socket) ?? [])].some(
    ({ headersSent, writableEnded }) => headersSent && !writableEnded,
  );
  if (isAnswering || !socket.writable) socket.destroy();
  else writeRaw(socket, toErrorResponse(toHttpError(error), randomUUID()));
}

/** Writes a complete answer and closes. */
export function writeRaw(socket: Duplex, { status, headers, body }: ResponseLike): void {
  socket.on('error', () => socket.destroy());
  const lines = [`HTTP/1.1 ${status} `, 'connection: close'];
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at]}: ${headers[at + 1]}`);
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  if (isWhole(body)) socket.end(body);
  else pipeline(Readable.from(body), socket, () => socket.destroy());
}

function toHttpError(error: Error): HttpError {
  const code = 'code' in error ? error.code : undefined;
  if (code === 'HPE_INVALID_METHOD') return new NotImplemented();
  if (code === 'HPE_HEADER_OVERFLOW') return new HttpError(431);
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new HttpError(408);
  return new HttpError(400, { detail: 'the request cannot be read' });
}

/** For the rest of a body: long enough for a peer that is busy. */
const graceMs = 3_000;

/** Called for an incomplete request, before the answer is sent. */
export function endUnread(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => {
    if (request.complete) return;
    request.resume();
    // A reader that left while it waited is removed with the next chunk, and nothing flows before that.
    request.on('removeListener', (event) => {
      if (event === 'readable') setImmediate(() => request.resume());
    });
    const timer = setTimeout(() => request.destroy(), graceMs).unref();
    request.once('close', () => clearTimeout(timer));
    request.once('end', () => clearTimeout(timer));
  });
}
