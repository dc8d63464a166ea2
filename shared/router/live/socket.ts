// The life of a WebSocket's connection: one instance of its class, whose messages are handled one after another
// (behaviour: sockets). The socket itself is of the package `ws`.
import { toErrorResponse } from '../answer/problem.ts';
import type { Socket } from '../controller.ts';
import { Stop } from '../errors.ts';
import type { Connection, SessionLike } from '../request/request.ts';

export interface SessionOptions {
  /** The id of the request, which stands in the problems that its client is sent. */
  readonly requestId: string;
  readonly protocol: string;
  /** Whether binary messages are taken. */
  readonly takesBytes: boolean;
  readonly heartbeatMs: number;
  readonly queuedBytes: number;
  /** Calls MESSAGE; what it resolves to is sent. */
  readonly onMessage: (data: Uint8Array) => Promise<unknown>;
  /** Calls DISCONNECT. */
  readonly onEnd: (how: { readonly code: number; readonly reason: string }) => Promise<void>;
  /** For what is thrown because of us. */
  readonly report: (status: number, error: unknown) => void;
}

const wrongKind = 1003;
const failed = 1011;
const goingAway = 1001;

/** From CONNECT to DISCONNECT. */
export class Session implements Socket, SessionLike {
  readonly #options: SessionOptions;
  /** What is sent before the connection is open. */
  #early: (string | Uint8Array)[] = [];
  #earlyBytes = 0;
  #connection: Connection | undefined;
  #messages: Uint8Array[] = [];
  #isHandling = false;
  #isAlive = true;
  #isOver = false;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  get protocol(): string {
    return this.#options.protocol;
  }

  send(value: unknown): void {
    const text = toBytes(value) ?? (JSON.stringify(value) as string | undefined);
    if (text === undefined) throw new TypeError('a message has no value that JSON knows');
    if (this.#isOver) return;
    if (this.#connection !== undefined) {
      this.#write(this.#connection, text);
      return;
    }
    this.#earlyBytes += Buffer.byteLength(text);
    if (this.#earlyBytes > this.#options.queuedBytes) {
      throw new RangeError('CONNECT sends more than may wait for the connection');
    }
    this.#early.push(text);
  }

  close(code = 1000, reason = ''): void {
    this.#messages = [];
    this.#connection?.close(code, reason);
  }

  /** The application ends. */
  endWithApplication(): void {
    this.close(goingAway);
  }

  open(connection: Connection): void {
    this.#connection = connection;
    const beat = setInterval(() => this.#beat(connection), this.#options.heartbeatMs);
    connection.on('pong', () => {
      this.#isAlive = true;
    });
    // Each ping is answered, also to a client that reads no answers.
    connection.on('ping', () => this.#cutSlowReader(connection));
    connection.on('message', (data, isBinary) => this.#take(connection, data, isBinary));
    // Something wrong from the other side closes the connection by itself.
    connection.on('error', () => {});
    connection.once('close', (code, reason) => {
      clearInterval(beat);
      this.#end(code, reason.toString());
    });
    for (const text of this.#early) this.#write(connection, text);
    this.#early = [];
  }

  abandon(): void {
    this.#end(1006, '');
  }

  #end(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#messages = [];
    const { onEnd, report } = this.#options;
    onEnd({ code, reason }).catch((error: unknown) => report(500, error));
  }

  #write(connection: Connection, text: string | Uint8Array): void {
    connection.send(text, () => {});
    this.#cutSlowReader(connection);
  }

  #cutSlowReader(connection: Connection): void {
    if (connection.bufferedAmount > this.#options.queuedBytes) connection.terminate();
  }

  #beat(connection: Connection): void {
    // Nothing is read while a message is handled, so no answer either.
    if (this.#isHandling) return;
    if (!this.#isAlive) connection.terminate();
    else connection.ping();
    this.#isAlive = false;
  }

  /** While one message is handled no more bytes are read: those that wait are what was read at once. */
  #take(connection: Connection, data: Uint8Array, isBinary: boolean): void {
    const isRefused = isBinary && !this.#options.takesBytes;
    if (isRefused) connection.close(wrongKind, 'messages are texts');
    else this.#messages.push(data);
    if (isRefused || this.#isHandling) return;
    this.#isHandling = true;
    connection.pause();
    void this.#handleAll(connection).finally(() => {
      this.#isHandling = false;
      this.#isAlive = true;
      connection.resume();
    });
  }

  async #handleAll(connection: Connection): Promise<void> {
    for (let data = this.#messages.shift(); data !== undefined; data = this.#messages.shift()) {
      try {
        const answer = await this.#options.onMessage(data);
        if (answer !== undefined) this.send(answer);
      } catch (error) {
        if (error instanceof Stop) this.send(error.value ?? null);
        else this.#refuse(connection, error);
      }
    }
  }

  /** A wrong message is reported to its sender; a failure of ours ends the connection. */
  #refuse(connection: Connection, error: unknown): void {
    const { requestId, report } = this.#options;
    const { status, body } = toErrorResponse(error, requestId);
    this.#write(connection, `{"error":${body}}`);
    if (status < 500) return;
    report(status, error);
    this.close(failed);
  }
}

/** Undefined for what is no bytes. */
function toBytes(value: unknown): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (!ArrayBuffer.isView(value)) return undefined;
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}
