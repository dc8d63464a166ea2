// The application on node:http: a listener for an existing server, or a server of its own with time limits
// and answers to malformed requests.
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Dispatch } from '../dispatch.ts';
import type { RequestLike } from '../request/request.ts';
import { endUnread } from './unread-body.ts';
import { answerUnreadable, trackAnswer, writeRaw } from './unreadable-request.ts';

export type Listener = RequestListener;

const headersTimeoutMs = 10_000;
const requestTimeoutMs = 60_000;

export function createListener(dispatch: Dispatch): Listener {
  return (request, response) => {
    // Dispatching never fails; a connection or a stream in the middle of an answer can.
    answer(dispatch, request, response).catch(() => response.destroy());
  };
}

/** A server that is not listening yet. Unknown methods are 501, as everywhere. */
export function createNodeServer(app: { readonly dispatch: Dispatch }): Server {
  const server = createServer(
    { headersTimeout: headersTimeoutMs, requestTimeout: requestTimeoutMs },
    createListener(app.dispatch),
  );
  server.on('request', trackAnswer);
  server.on('clientError', answerUnreadable);
  server.on('connect', (request: IncomingMessage, socket) => {
    app
      .dispatch({ ...toRequestLike(request), body: undefined })
      .then((answer) => writeRaw(socket, answer))
      .catch(() => socket.destroy());
  });
  return server;
}

export function toRequestLike(request: IncomingMessage): RequestLike {
  const headers = new Headers();
  const raw = request.rawHeaders;
  for (let at = 0; at < raw.length; at += 2) headers.append(raw[at] ?? '', raw[at + 1] ?? '');
  const hasBody =
    headers.has('transfer-encoding') || Number(headers.get('content-length') ?? 0) > 0;
  return {
    method: request.method ?? '',
    target: request.url ?? '',
    headers,
    body: hasBody ? request.iterator({ destroyOnReturn: false }) : undefined,
    remoteAddress: request.socket.remoteAddress,
  };
}

async function answer(
  dispatch: Dispatch,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, headers, body } = await dispatch(toRequestLike(request));
  endUnread(request, response);
  response.writeHead(status, [...headers].flat());
  if (body === undefined || body instanceof Uint8Array) {
    response.end(body);
    return;
  }
  await pipeline(Readable.from(body), response);
}
