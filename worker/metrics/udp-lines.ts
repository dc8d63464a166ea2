// Sends lines in UDP datagrams, several in each (behaviour: pushed-lines).
import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { repeatAfter } from '../../shared/clock.ts';
import { errorText } from '../../shared/errors.ts';
import { countLines, type LineReceiverDeps, type LineTransport } from './line-sink.ts';

/** Fits into an Ethernet frame with headers. */
const maxDatagramBytes = 1432;
const maxWaitingBytes = 4 * 1024 * 1024;
/** The pause before a name that did not resolve, or a refused address, is tried again. */
const reopenMs = 3000;
/**
 * A missing receiver causes, if anything, an error after sending: without one for this long after a datagram was sent,
 * the receiver counts as reached.
 */
const quietMs = 5000;
/**
 * How often another socket replaces the current one. Its name may have another address by now, and a translation of
 * addresses may still send datagrams from the old port to a receiver that is gone: neither causes an error.
 */
const renewMs = 60_000;

/** Starts resolving the host immediately. */
export function createUdpLines(deps: LineReceiverDeps): LineTransport {
  return new UdpLines(deps);
}

class UdpLines implements LineTransport {
  readonly #deps: LineReceiverDeps;
  #phase: 'opening' | 'open' | 'lost' | 'closed' = 'opening';
  /** Set from its creation until it has failed or is closed. */
  #socket: Socket | undefined;
  readonly #stopRenewing;
  #sendingCount = 0;
  #noteIdle = () => {};
  /** The timer, in phase `lost`, of the next attempt; in phase `open`, until the receiver counts as reached. */
  #cancelTimer: (() => void) | undefined;

  constructor(deps: LineReceiverDeps) {
    this.#deps = deps;
    this.#stopRenewing = repeatAfter(deps.clock, renewMs, () => this.#renew());
    void this.#open();
  }

  get ready(): boolean {
    return this.#phase === 'open' && (this.#socket?.getSendQueueSize() ?? 0) < maxWaitingBytes;
  }

  send(lines: string): void {
    for (const datagram of toDatagrams(Buffer.from(lines))) this.#sendOne(datagram);
  }

  async close(graceMs: number): Promise<void> {
    if (this.#phase === 'closed') return;
    this.#phase = 'closed';
    this.#stopRenewing();
    this.#stopTimer();
    if (this.#sendingCount > 0) {
      await new Promise<void>((resolve) => {
        const cancel = this.#deps.clock.after(graceMs, resolve);
        this.#noteIdle = () => {
          cancel();
          resolve();
        };
      });
    }
    this.#closeSocket();
  }

  /** Never rejects. The host is resolved each time: its address may have changed. */
  async #open(): Promise<void> {
    const { host, port, family } = this.#deps;
    this.#phase = 'opening';
    try {
      const found = await lookup(host, { family });
      // Called as a method, since it may have been closed meanwhile.
      if (this.#isClosed()) return;
      const socket = createSocket(found.family === 6 ? 'udp6' : 'udp4');
      this.#socket = socket;
      socket.on('error', (error) => this.#lose(socket, error));
      // Called with an error when there is no route to the address.
      socket.connect(port, found.address, (error?: Error) => {
        if (error !== undefined) this.#lose(socket, error);
        else if (socket === this.#socket && !this.#isClosed()) this.#phase = 'open';
      });
    } catch (error) {
      this.#lose(this.#socket, error);
    }
  }

  /** Never rejects. A name that does not resolve for a while keeps its socket. */
  async #renew(): Promise<void> {
    const { host, family } = this.#deps;
    const isResolved = await lookup(host, { family }).then(
      () => true,
      () => false,
    );
    if (!isResolved || this.#phase !== 'open') return;
    this.#closeSocket();
    await this.#open();
  }

  #isClosed(): boolean {
    return this.#phase === 'closed';
  }

  #sendOne(datagram: Uint8Array): void {
    const socket = this.#socket;
    if (socket === undefined || this.#phase !== 'open') {
      this.#deps.onDropped(countLines(datagram));
      return;
    }
    this.#sendingCount++;
    try {
      socket.send(datagram, (error) => this.#noteSent(socket, datagram, error));
    } catch (error) {
      this.#noteSent(socket, datagram, error);
    }
  }

  #noteSent(socket: Socket, datagram: Uint8Array, error: unknown): void {
    this.#sendingCount--;
    if (this.#sendingCount === 0) this.#noteIdle();
    if (error !== null && error !== undefined) {
      this.#deps.onDropped(countLines(datagram));
      this.#lose(socket, error);
    } else if (socket === this.#socket && this.#phase === 'open') {
      this.#cancelTimer ??= this.#deps.clock.after(quietMs, this.#deps.onBack);
    }
  }

  /** Does nothing for a socket that is no longer the current one. */
  #lose(failed: Socket | undefined, error: unknown): void {
    if (failed !== this.#socket || this.#isClosed()) return;
    this.#closeSocket();
    this.#stopTimer();
    this.#phase = 'lost';
    this.#cancelTimer = this.#deps.clock.after(reopenMs, () => {
      this.#cancelTimer = undefined;
      void this.#open();
    });
    this.#deps.onLost(errorText(error));
  }

  #stopTimer(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #closeSocket(): void {
    // A late error of a closed socket has no other listener.
    this.#socket?.removeAllListeners('error').on('error', () => {});
    this.#socket?.close();
    this.#socket = undefined;
  }
}

/** Splits between lines; a line longer than a datagram should be is sent alone. */
function* toDatagrams(lines: Buffer): Generator<Buffer> {
  const newline = 0x0a;
  let start = 0;
  while (start < lines.length) {
    let end = start + maxDatagramBytes;
    if (end < lines.length) {
      const lastFitting = lines.lastIndexOf(newline, end - 1);
      end = lastFitting >= start ? lastFitting + 1 : lines.indexOf(newline, end) + 1;
      if (end === 0) end = lines.length;
    }
    yield lines.subarray(start, end);
    start = end;
  }
}
