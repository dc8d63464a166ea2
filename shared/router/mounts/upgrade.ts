// WebSocket handshakes on node:http servers. The package `ws` implements the protocol, for which Node has no server; ws
// has no dependencies, bounds messages, and is widely used by other frameworks. It is loaded if an application has a
// class with CONNECT. crossws, which wraps it, cannot pause a connection while a message is handled.
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Limits } from '../limits.ts';
import type { Dispatch, ResponseLike } from '../request/request.ts';
import { writeRaw } from './connection.ts';
import { isWebSocket, toRequestLike, type Upgrade } from './node-http.ts';

export async function loadUpgrade(dispatch: Dispatch, limits: Limits): Promise<Upgrade> {
  const { WebSocketServer } = await import('ws');
  const answers = new WeakMap<IncomingMessage, ResponseLike>();
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: limits.messageBytes,
    // Without this option, ws would choose the first protocol that a client offers.
    handleProtocols: (_offered, request) => answers.get(request)?.session?.protocol || false,
  });
  server.on('headers', (lines, request) => {
    const list = answers.get(request)?.headers ?? [];
    for (let at = 0; at < list.length; at += 2) lines.push(`${list[at]}: ${list[at + 1]}`);
  });

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const gone = new AbortController();
    socket.once('close', () => gone.abort());
    const answer = await dispatch({
      ...toRequestLike(request),
      body: undefined,
      signal: () => gone.signal,
      isUpgrade: isWebSocket(request),
    });
    const { session } = answer;
    if (session === undefined) return writeRaw(socket, answer);
    answers.set(request, answer);
    let isOpen = false;
    server.handleUpgrade(request, socket, head, (connection) => {
      isOpen = true;
      session.open(connection);
    });
    if (!isOpen) session.abandon();
  }

  return (request, socket, head) => {
    // Until the connection is open, no other code listens for its errors.
    socket.on('error', () => socket.destroy());
    upgrade(request, socket, head).catch(() => socket.destroy());
  };
}
