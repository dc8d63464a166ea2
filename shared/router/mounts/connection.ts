// What ends on the connection itself. Requests that the HTTP parser refuses, which never reach the application, are
// answered in the same format: 501 for a method that the parser does not know, 400, 408 or 431 for the rest. If a body
// is left unread, its rest is read and dropped for a short time, so that the peer receives the answer and not a reset;
// then the connection is closed.
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Duplex, pipeline, Readable } from 'node:stream';
import { toErrorResponse } from '../answer/problem.ts';
import { HttpError, NotImplemented } from '../errors.ts';
import { isBuffered, type ResponseLike } from '../request/request.ts';

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
  if (isBuffered(body)) socket.end(body);
  else pipeline(Readable.from(body), socket, () => socket.destroy());
}

function toHttpError(error: Error): HttpError {
  const code = 'code' in error ? error.code : undefined;
  if (code === 'HPE_INVALID_METHOD') return new NotImplemented();
  if (code === 'HPE_HEADER_OVERFLOW') return new HttpError(431);
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new HttpError(408);
  return new HttpError(400, { detail: 'the request cannot be read' });
}

/** A peer whose body makes no progress for this time is cut, and each peer after ten times this time. */
const graceMs = 3_000;
const graces = 10;

/** Called for an incomplete request, before the answer is sent. */
export function endUnread(request: IncomingMessage, response: ServerResponse): void {
  response.once('finish', () => {
    if (request.complete) return;
    request.resume();
    // A reader that disconnected while it waited is removed with the next chunk, and nothing flows before that.
    request.on('removeListener', (event) => {
      if (event === 'readable') setImmediate(() => request.resume());
    });
    // Null if the client has disconnected.
    const socket: Socket | null = request.socket;
    if (socket === null) return;
    let bytes = socket.bytesRead;
    let left = graces;
    // A process that was busy for longer has bytes to read, so it reads before it judges.
    const judge = () => {
      left -= 1;
      if (!request.complete && (left === 0 || socket.bytesRead === bytes)) request.destroy();
      bytes = socket.bytesRead;
    };
    const timer = setInterval(() => setImmediate(judge), graceMs).unref();
    request.once('close', () => clearInterval(timer));
    request.once('end', () => clearInterval(timer));
  });
}
