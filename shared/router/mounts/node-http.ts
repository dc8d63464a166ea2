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
import type { App } from '../app.ts';
import type { Dispatch } from '../dispatch.ts';
import { isWhole, type RequestLike } from '../request/request.ts';
import { RawHeaders } from './raw-headers.ts';
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
export function createNodeServer(app: Pick<App, 'dispatch' | 'upgrade'>): Server {
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout: requestTimeoutMs,
      // What asks for another protocol than we speak is answered as if it had not.
      shouldUpgradeCallback: isWebSocket,
    },
    createListener(app.dispatch),
  );
  server.on('clientError', answerUnreadable);
  if (app.upgrade !== undefined) server.on('upgrade', app.upgrade);
  server.on('connect', (request: IncomingMessage, socket) => {
    app
      .dispatch({ ...toRequestLike(request), body: undefined })
      .then((answer) => writeRaw(socket, answer))
      .catch(() => socket.destroy());
  });
  return server;
}

export function isWebSocket({ headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

export function toRequestLike(request: IncomingMessage, response?: ServerResponse): RequestLike {
  const headers = new RawHeaders(request.rawHeaders);
  return {
    method: request.method ?? '',
    target: request.url ?? '',
    headers,
    body: hasBody(headers) ? request : undefined,
    get remoteAddress() {
      return request.socket.remoteAddress;
    },
    ...(response && { signal: () => toGoneSignal(response) }),
  };
}

/** Aborted when the connection closes before the answer has been sent. */
function toGoneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  const look = () => {
    if (!response.writableFinished) gone.abort();
  };
  if (response.closed) look();
  else response.once('close', look);
  return gone.signal;
}

function hasBody(headers: RawHeaders): boolean {
  return Number(headers.get('content-length') ?? 0) > 0 || headers.has('transfer-encoding');
}

async function answer(
  dispatch: Dispatch,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { status, headers, body } = await dispatch(toRequestLike(request, response));
  if (!request.complete) endUnread(request, response);
  response.writeHead(status, headers as string[]);
  if (isWhole(body)) {
    response.end(body);
    return;
  }
  trackAnswer(request, response);
  await pipeline(Readable.from(body), response);
}
