// From a handshake to a session: CONNECT may still refuse it, with what it throws; after that MESSAGE gets each message
// and DISCONNECT the end.

import type { Binder } from '../arguments/bind.ts';
import type { ControllerContext } from '../controller.ts';
import { HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { fromValue, noBody } from '../request/body.ts';
import { parseJson } from '../request/json.ts';
import { noKeywords } from '../request/keywords.ts';
import { toHeaderList } from '../request/listed-headers.ts';
import type { LazyDraft, LazyRequest, ResponseLike } from '../request/request.ts';
import type { LiveConnections } from './live-connections.ts';
import { Session } from './socket.ts';

/** A class with CONNECT, whose instances stay as long as their connections. */
export interface SocketClass {
  /** Binds the arguments of MESSAGE; undefined where the class has none: then messages are refused. */
  readonly message: Binder | undefined;
  /** MESSAGE gets the bytes of any message, of text or binary. */
  readonly takesBytes: boolean;
  readonly protocols: readonly string[];
  /** Makes the instance of a connection. */
  create(context: ControllerContext): SocketInstance;
}

interface SocketInstance {
  CONNECT(...args: readonly unknown[]): unknown;
  MESSAGE?(...args: readonly unknown[]): unknown;
  DISCONNECT?(how: { readonly code: number; readonly reason: string }): unknown;
}

interface SocketContext {
  readonly request: LazyRequest;
  readonly response: LazyDraft;
  readonly describe: ControllerContext['describe'];
}

interface SocketDeps {
  readonly live: LiveConnections;
  readonly limits: Limits;
  readonly report: (status: number, error: unknown) => void;
}

/** Rejects with what CONNECT throws, or with 503 where too many connections are open. */
export async function answerSocket(
  socket: SocketClass,
  context: SocketContext,
  args: readonly unknown[],
  deps: SocketDeps,
): Promise<ResponseLike> {
  const session = await openSession(socket, context, args, deps);
  const headers = toHeaderList([], context.response.setHeaders, context.request.id);
  return { status: 101, headers, body: undefined, session };
}

async function openSession(
  { message, takesBytes, protocols, create }: SocketClass,
  context: SocketContext,
  args: readonly unknown[],
  { live, limits, report }: SocketDeps,
): Promise<Session> {
  const { request } = context;
  const session: Session = new Session({
    requestId: request.id,
    takesBytes,
    protocol: chooseProtocol(protocols, request.headers.get('sec-websocket-protocol')),
    heartbeatMs: limits.heartbeatMs,
    queuedBytes: limits.queuedBytes,
    report,
    async onMessage(data) {
      if (message === undefined) return undefined;
      if (takesBytes) {
        const bytes = { ...noBody, unparsed: data, bytes: data.byteLength };
        return instance.MESSAGE?.(...message.bind([], noKeywords, bytes));
      }
      const text = data.toString();
      const value = parseJson(text, limits.jsonDepth);
      const body = fromValue(value, { from: 'json', bytes: text.length });
      return instance.MESSAGE?.(...message.bind([], noKeywords, body));
    },
    async onEnd(how) {
      leave();
      request.end();
      await instance.DISCONNECT?.(how);
    },
  });
  const leave = live.enter(() => session.endWithApplication());
  let instance: SocketInstance;
  try {
    instance = create({ ...context, request, socket: session });
    if ((await instance.CONNECT(...args)) === false) {
      throw new HttpError(403, {
        cause: new TypeError('CONNECT returned false; it throws an HttpError to refuse'),
      });
    }
  } catch (error) {
    leave();
    request.end();
    throw error;
  }
  return session;
}

function chooseProtocol(known: readonly string[], offered: string | null): string {
  if (known.length === 0 || offered === null) return '';
  const names = offered.split(',').map((name) => name.trim());
  const chosen = known.find((name) => names.includes(name));
  if (chosen !== undefined) return chosen;
  throw new HttpError(400, { detail: `the subprotocol is one of ${known.join(', ')}` });
}
