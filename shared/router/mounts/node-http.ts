// The application on node:http: a listener for an existing server, or a server of its own with time limits and answers
// to malformed requests.
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { type Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { cancelStream } from '../answer/stream.ts';
import { settle } from '../maybe-promise.ts';
import type { ServedMethod } from '../op.ts';
import { ListedHeaders } from '../request/listed-headers.ts';
import {
  type Dispatch,
  isBuffered,
  type RequestLike,
  type ResponseLike,
} from '../request/request.ts';
import { answerUnreadable, endUnread, trackAnswer, writeRaw } from './connection.ts';

export type Listener = RequestListener;

/** For the server's `upgrade` event. */
export type Upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** The part of an application that the router's own server uses. */
export interface ServedApp {
  readonly dispatch: Dispatch;
  readonly upgrade: Upgrade | undefined;
  readonly routes?: readonly ServedMethod[];
}

const headersTimeoutMs = 10_000;
const requestTimeoutMs = 60_000;

/** What an answer is sent to. */
interface Exchange {
  readonly given: RequestLike;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** `asksForBodies`: for the event `checkContinue`, in which Node leaves it to the listener to request the body. */
export function createListener(
  dispatch: Dispatch,
  { asksForBodies }: { readonly asksForBodies: boolean } = { asksForBodies: false },
): Listener {
  const answer = ({ given }: Exchange) => dispatch(given);
  return (request, response) => {
    try {
      const parsed = toRequestLike(request, response);
      const given = asksForBodies
        ? { ...parsed, askForBody: () => response.headersSent || response.writeContinue() }
        : parsed;
      void settle({ given, request, response }, answer, send, fail);
    } catch {
      response.destroy();
    }
  };
}

/** Dispatching never fails, but a connection or a stream can fail in the middle of an answer. */
function fail({ response }: Exchange): void {
  response.destroy();
}

/** A server that is not listening yet. Unknown methods return 501, as everywhere. */
export function createNodeServer(app: ServedApp): Server {
  const server = createServer(
    {
      headersTimeout: headersTimeoutMs,
      requestTimeout: longestBodyMs(app.routes ?? []),
      // A request to upgrade to an unsupported protocol is answered as if it did not ask for an upgrade.
      shouldUpgradeCallback: (request) => app.upgrade !== undefined && isWebSocket(request),
      // The stream of a request without a body has no listeners; its events would be a tenth of the cost of a small
      // answer. Node before 24.12 ignores this option.
      optimizeEmptyRequests: true,
    },
    createListener(app.dispatch),
  );
  // If the length of a body or a guard refuses it, the client is not asked to send it.
  server.on('checkContinue', createListener(app.dispatch, { asksForBodies: true }));
  server.on('clientError', answerUnreadable);
  if (app.upgrade !== undefined) server.on('upgrade', app.upgrade);
  server.on('connect', (request: IncomingMessage, socket) => {
    answerConnect(app.dispatch, request, socket).catch(() => socket.destroy());
  });
  return server;
}

/** If a method allows its body more time than the server would, the server's limit is extended; 0 is no limit. */
function longestBodyMs(routes: readonly ServedMethod[]): number {
  const longest = Math.max(
    requestTimeoutMs,
    ...routes.map(({ route }) => route.limits.bodyTimeoutMs),
  );
  return Number.isFinite(longest) ? longest : 0;
}

/** Whether the handshake is complete (RFC 6455, section 4.2.1): CONNECT is called only for those. */
export function isWebSocket({ method, headers }: IncomingMessage): boolean {
  const { upgrade, 'sec-websocket-key': key, 'sec-websocket-version': version } = headers;
  const isAsked = method === 'GET' && upgrade?.toLowerCase() === 'websocket';
  return isAsked && version === '13' && /^[+/\dA-Za-z]{22}==$/.test(key ?? '');
}

export function toRequestLike(request: IncomingMessage, response?: ServerResponse): RequestLike {
  const headers = new ListedHeaders(request.rawHeaders);
  return {
    method: request.method ?? '',
    target: request.url ?? '',
    headers,
    body: hasBody(headers) ? request : undefined,
    remoteAddress: request.socket.remoteAddress,
    scheme: 'encrypted' in request.socket ? 'https' : 'http',
    signal: response && (() => toGoneSignal(response)),
  };
}

/** Aborted when the connection closes before the answer has been sent. */
function toGoneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  const abortIfUnsent = () => {
    if (!response.writableFinished) gone.abort();
  };
  if (response.closed) abortIfUnsent();
  else response.once('close', abortIfUnsent);
  return gone.signal;
}

function hasBody(headers: Headers): boolean {
  return Number(headers.get('content-length') ?? 0) > 0 || headers.has('transfer-encoding');
}

async function answerConnect(
  dispatch: Dispatch,
  request: IncomingMessage,
  socket: Duplex,
): Promise<void> {
  writeRaw(socket, await dispatch({ ...toRequestLike(request), body: undefined }));
}

/** Waits only if the body is a stream. */
function send(
  { given, request, response }: Exchange,
  { status, headers, body }: ResponseLike,
): Promise<void> | undefined {
  // A request without a body is complete as well, but the parser has not reported it yet if the answer is synchronous.
  if (given.body !== undefined && !request.complete) endUnread(request, response);
  response.writeHead(status, headers as string[]);
  if (!isBuffered(body)) {
    // A pipeline to a closed connection neither sends nor ends anything.
    if (response.destroyed) {
      cancelStream(body);
      return undefined;
    }
    trackAnswer(request, response);
    // Otherwise the head would wait for a first chunk, which can be an event much later.
    setImmediate(() => response.flushHeaders());
    return pipeline(Readable.from(body), response);
  }
  // If a text has as many bytes as characters, Node copies it, but would encode any other: a tenth of the cost of a
  // large answer.
  const length = headers[headers.indexOf('content-length') + 1];
  const isAscii = typeof body === 'string' && length === String(body.length);
  response.end(body, isAscii ? 'latin1' : 'utf8');
  return undefined;
}
