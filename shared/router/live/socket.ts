// WebSockets: one instance of a class with CONNECT per connection (behaviour: sockets). CONNECT can still refuse the
// handshake by throwing; after that, MESSAGE receives each message, one after another, and DISCONNECT the end. The
// package `ws` implements the socket itself.
import { AsyncLocalStorage } from 'node:async_hooks';
import { bytesOf } from '../answer/encode.ts';
import { toJsonText } from '../answer/json-text.ts';
import { toErrorResponse } from '../answer/problem.ts';
import type { Binder } from '../arguments/bind.ts';
import type { ControllerContext, Socket } from '../controller.ts';
import { HttpError, Stop } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { noBody } from '../request/body.ts';
import { parseJson } from '../request/json.ts';
import { toHeaderList } from '../request/listed-headers.ts';
import type {
  Connection,
  LazyDraft,
  LazyRequest,
  ResponseLike,
  SessionLike,
} from '../request/request.ts';
import { noKeywords } from '../request/target.ts';
import type { LiveConnections } from './live-connections.ts';

/** A class with CONNECT, whose instances live as long as their connections. */
export interface SocketClass {
  /** Binds the arguments of MESSAGE; undefined if the class has none, which means that messages are refused. */
  readonly message: Binder | undefined;
  /** Whether MESSAGE receives the bytes of any message, text or binary. */
  readonly acceptsBytes: boolean;
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
  /** Reports errors that are ours. */
  readonly report: (status: number, error: unknown) => void;
}

/** Rejects with what CONNECT throws, or with 503 if too many connections are open. */
export async function answerSocket(
  socketClass: SocketClass,
  context: SocketContext,
  args: readonly unknown[],
  deps: SocketDeps,
): Promise<ResponseLike> {
  const session = new Session(socketClass, context.request, deps);
  await session.connect(context, args);
  const headers = toHeaderList([], context.response.setHeaders, context.request.id);
  return { status: 101, headers, body: undefined, session };
}

const wrongKind = 1003;
const failed = 1011;
const goingAway = 1001;

/** Reported codes that no close frame can have (RFC 6455, section 7.4.1). */
const unsendable: ReadonlySet<number> = new Set([1004, 1005, 1006]);
/** A control frame has 125 bytes, and the code two of them (section 5.5). */
const maxReasonBytes = 123;

/** The life of a connection, from CONNECT to DISCONNECT. */
class Session implements Socket, SessionLike {
  readonly protocol: string;
  readonly #class: SocketClass;
  readonly #request: LazyRequest;
  readonly #deps: SocketDeps;
  readonly #leave: () => void;
  /** The async context of the arounds at CONNECT, which applies to later calls. */
  readonly #inside = AsyncLocalStorage.snapshot();
  #instance: SocketInstance | undefined;
  /** Actions that were requested before the connection is open. */
  #early: ((connection: Connection) => void)[] = [];
  #earlyBytes = 0;
  #connection: Connection | undefined;
  #messages: Uint8Array[] = [];
  #isHandling = false;
  /** Later messages are dropped: the client may send more before it has read that the connection closes. */
  #isClosing = false;
  #isAlive = true;
  #isOver = false;

  constructor(socketClass: SocketClass, request: LazyRequest, deps: SocketDeps) {
    const offered = request.headers.get('sec-websocket-protocol');
    this.protocol = chooseProtocol(socketClass.protocols, offered);
    this.#class = socketClass;
    this.#request = request;
    this.#deps = deps;
    this.#leave = deps.live.enter(() => this.close(goingAway));
  }

  async connect(context: SocketContext, args: readonly unknown[]): Promise<void> {
    try {
      this.#instance = this.#class.create({ ...context, socket: this });
      const returned = await this.#instance.CONNECT(...args);
      if (returned instanceof Error) throw returned;
      if (returned !== false && !(returned instanceof Response)) return;
      throw new HttpError(403, {
        cause: new TypeError(
          'CONNECT returned false or a Response; it throws an HttpError to refuse',
        ),
      });
    } catch (error) {
      this.#leave();
      this.#request.end();
      throw error;
    }
  }

  send(value: unknown): void {
    const text = bytesOf(value) ?? toJsonText(value);
    if (this.#isOver) return;
    if (this.#connection !== undefined) {
      this.#write(this.#connection, text);
      return;
    }
    this.#earlyBytes += Buffer.byteLength(text);
    if (this.#earlyBytes > this.#deps.limits.queuedBytes) {
      throw new RangeError('CONNECT sends more than may wait for the connection');
    }
    this.#early.push((connection) => this.#write(connection, text));
  }

  close(code = 1000, reason = ''): void {
    const isCode = (code >= 3000 && code <= 4999) || (code >= 1000 && code <= 1014);
    if (!isCode || unsendable.has(code) || Buffer.byteLength(reason) > maxReasonBytes) {
      throw new RangeError(`a WebSocket cannot be closed with ${code} ${reason}`);
    }
    this.#messages = [];
    this.#isClosing = true;
    if (this.#connection !== undefined) this.#connection.close(code, reason);
    else this.#early.push((connection) => connection.close(code, reason));
  }

  open(connection: Connection): void {
    this.#connection = connection;
    const beat = setInterval(() => this.#beat(connection), this.#deps.limits.heartbeatMs);
    connection.on('pong', () => {
      this.#isAlive = true;
    });
    // The library answers each ping, even if the client reads no answers.
    connection.on('ping', () => this.#cutSlowReader(connection));
    connection.on('message', (data, isBinary) => this.#receive(connection, data, isBinary));
    // A protocol error of the client closes the connection without further action.
    connection.on('error', () => {});
    connection.once('close', (code, reason) => {
      clearInterval(beat);
      void this.#end(code, reason.toString());
    });
    for (const act of this.#early) act(connection);
    this.#early = [];
  }

  abandon(): void {
    void this.#end(1006, '');
  }

  async #end(code: number, reason: string): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#messages = [];
    this.#leave();
    this.#request.end();
    try {
      await this.#inside(() => this.#instance?.DISCONNECT?.({ code, reason }));
    } catch (error) {
      this.#deps.report(500, error);
    }
  }

  #write(connection: Connection, text: string | Uint8Array): void {
    connection.send(text, () => {});
    this.#cutSlowReader(connection);
  }

  #cutSlowReader(connection: Connection): void {
    if (connection.bufferedAmount > this.#deps.limits.queuedBytes) connection.terminate();
  }

  #beat(connection: Connection): void {
    // Nothing is read while a message is handled, so a pong cannot arrive either.
    if (this.#isHandling) return;
    if (!this.#isAlive) connection.terminate();
    else connection.ping();
    this.#isAlive = false;
  }

  /** No bytes are read while a message is handled: the waiting messages were read together with it. */
  #receive(connection: Connection, data: Uint8Array, isBinary: boolean): void {
    if (this.#isClosing) return;
    if (isBinary && !this.#class.acceptsBytes) {
      this.#isClosing = true;
      connection.close(wrongKind, 'messages are texts');
      return;
    }
    this.#messages.push(data);
    if (this.#isHandling) return;
    this.#isHandling = true;
    connection.pause();
    void this.#inside(() => this.#handleAll(connection)).finally(() => {
      this.#isHandling = false;
      this.#isAlive = true;
      connection.resume();
    });
  }

  async #handleAll(connection: Connection): Promise<void> {
    for (let data = this.#messages.shift(); data !== undefined; data = this.#messages.shift()) {
      try {
        const answer = await this.#callMessage(data);
        if (answer instanceof Error) throw answer;
        if (answer !== undefined) this.send(answer);
      } catch (error) {
        if (error instanceof Stop) this.send(error.value ?? null);
        else this.#refuse(connection, error);
      }
    }
  }

  /** A synchronous error becomes a rejection too, so that messages that were read together wait for each other. */
  async #callMessage(data: Uint8Array): Promise<unknown> {
    const { message, acceptsBytes } = this.#class;
    if (message === undefined) return undefined;
    const body = acceptsBytes
      ? { ...noBody, unparsed: data }
      : { ...noBody, value: parseJson(data.toString(), this.#deps.limits.jsonDepth) };
    return this.#instance?.MESSAGE?.(...message.bind([], noKeywords, body));
  }

  /** An invalid message is reported to its sender; a failure of ours ends the connection. */
  #refuse(connection: Connection, error: unknown): void {
    const { status, body } = toErrorResponse(error, this.#request.id);
    this.#write(connection, `{"error":${body}}`);
    if (status < 500) return;
    this.#deps.report(status, error);
    this.close(failed);
  }
}

function chooseProtocol(known: readonly string[], offered: string | null): string {
  if (known.length === 0 || offered === null) return '';
  const names = offered.split(',').map((name) => name.trim());
  const chosen = known.find((name) => names.includes(name));
  if (chosen !== undefined) return chosen;
  throw new HttpError(400, { detail: `the subprotocol is one of ${known.join(', ')}` });
}
