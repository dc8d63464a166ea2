// Sends lines over one TCP connection, and reconnects whenever it is lost (behaviour: pushed-lines).
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { countLines, type LineReceiverDeps, type LineTransport } from './line-sink.ts';

const reconnectMs = 3000;
const dialTimeoutMs = 1500;
/** A connection that lasts this long leads to a receiver: a balancer also accepts connections without one. */
const quietMs = 5000;
/** A receiver that reads nothing for this long counts as lost. */
const stallMs = 10_000;
/** Limit of bytes that wait for a slow receiver. */
const maxWaitingBytes = 4 * 1024 * 1024;

/** Starts connecting immediately. */
export class TcpLines implements LineTransport {
  readonly #deps: LineReceiverDeps;
  #socket: Socket;
  #isConnected = false;
  #isClosed = false;
  #writtenCount = 0;
  #isWatching = false;
  #cancelReconnect = () => {};
  #cancelDeadline = () => {};
  #cancelBack = () => {};

  constructor(deps: LineReceiverDeps) {
    this.#deps = deps;
    this.#socket = this.#open();
  }

  #open(): Socket {
    const opened = connect({
      host: this.#deps.host,
      port: this.#deps.port,
      family: this.#deps.family,
      noDelay: true,
    });
    let reason = 'the receiver closed the connection';
    this.#cancelDeadline = this.#deps.clock.after(dialTimeoutMs, () => {
      opened.destroy(new Error(`no connection within ${dialTimeoutMs}ms`));
    });
    opened.on('connect', () => {
      this.#cancelDeadline();
      this.#isConnected = true;
      this.#cancelBack = this.#deps.clock.after(quietMs, this.#deps.onBack);
    });
    // No input is expected; it is discarded so that it does not fill the buffers.
    opened.resume();
    opened.on('error', (error) => {
      reason = error.message;
    });
    opened.on('close', () => {
      this.#isConnected = false;
      this.#isWatching = false;
      this.#cancelDeadline();
      this.#cancelBack();
      if (this.#isClosed) return;
      this.#deps.onLost(reason);
      this.#cancelReconnect = this.#deps.clock.after(reconnectMs, () => {
        this.#socket = this.#open();
      });
    });
    return opened;
  }

  /** Closes the connection when the receiver reads nothing for too long. */
  #watchProgress(): void {
    const watched = this.#socket;
    const writtenBefore = this.#writtenCount;
    this.#isWatching = true;
    this.#cancelDeadline = this.#deps.clock.after(stallMs, () => {
      this.#isWatching = false;
      if (watched.writableLength === 0) return;
      if (this.#writtenCount > writtenBefore) this.#watchProgress();
      else watched.destroy(new Error(`the receiver accepted nothing for ${stallMs}ms`));
    });
  }

  get ready(): boolean {
    return this.#isConnected && this.#socket.writableLength < maxWaitingBytes;
  }

  send(lines: string): void {
    // A concatenated string would retain all its pieces in memory while it waits.
    const bytes = Buffer.from(lines);
    if (!this.#isConnected) {
      this.#deps.onDropped(countLines(bytes));
      return;
    }
    this.#socket.write(bytes, (error) => {
      if (error) this.#deps.onDropped(countLines(bytes));
      else this.#writtenCount++;
    });
    if (!this.#isWatching) this.#watchProgress();
  }

  async close(graceMs: number): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#cancelReconnect();
    this.#cancelDeadline();
    this.#cancelBack();
    if (this.#isConnected) {
      await new Promise<void>((resolve) => {
        const cancel = this.#deps.clock.after(graceMs, resolve);
        const done = () => {
          cancel();
          resolve();
        };
        this.#socket.once('finish', done).once('close', done).end();
      });
    }
    this.#socket.destroy();
  }
}
