// Sends lines over one TCP connection, and reconnects whenever it is lost (behaviour: pushed-lines).
import type { Socket } from 'node:net';
import { connect } from 'node:net';
import { countLines, type LineReceiverDeps, type LineTransport } from './line-sink.ts';

const reconnectMs = 3000;
const dialTimeoutMs = 1500;
/** A connection that is not lost within this time leads to a receiver: a balancer accepts without one. */
const quietMs = 5000;
/** A receiver that takes nothing for this long counts as lost. */
const stallMs = 10_000;
/** Limit of bytes that wait for a slow receiver. */
const maxWaitingBytes = 4 * 1024 * 1024;

/** Starts connecting at once. */
export function createTcpLines(deps: LineReceiverDeps): LineTransport {
  const { host, port, family, clock, onLost, onBack, onDropped } = deps;
  let socket: Socket;
  let isConnected = false;
  let isClosed = false;
  let takenCount = 0;
  let isWatching = false;
  let cancelReconnect = () => {};
  let cancelDeadline = () => {};
  let cancelBack = () => {};

  function open(): void {
    const opened = connect({ host, port, family, noDelay: true });
    socket = opened;
    let reason = 'the receiver closed the connection';
    cancelDeadline = clock.after(dialTimeoutMs, () => {
      opened.destroy(new Error(`no connection within ${dialTimeoutMs}ms`));
    });
    opened.on('connect', () => {
      cancelDeadline();
      isConnected = true;
      cancelBack = clock.after(quietMs, onBack);
    });
    // Input is not expected; it is discarded so that it does not fill the buffers.
    opened.resume();
    opened.on('error', (error) => {
      reason = error.message;
    });
    opened.on('close', () => {
      isConnected = false;
      isWatching = false;
      cancelDeadline();
      cancelBack();
      if (isClosed) return;
      onLost(reason);
      cancelReconnect = clock.after(reconnectMs, open);
    });
  }

  /** Closes the connection when the receiver takes nothing for too long. */
  function watchProgress(): void {
    const watched = socket;
    const takenBefore = takenCount;
    isWatching = true;
    cancelDeadline = clock.after(stallMs, () => {
      isWatching = false;
      if (watched.writableLength === 0) return;
      if (takenCount > takenBefore) watchProgress();
      else watched.destroy(new Error(`the receiver took nothing for ${stallMs}ms`));
    });
  }

  open();
  return {
    get ready() {
      return isConnected && socket.writableLength < maxWaitingBytes;
    },
    send(lines) {
      // A concatenated text would keep all its pieces in memory while it waits.
      const bytes = Buffer.from(lines);
      if (!isConnected) {
        onDropped(countLines(bytes));
        return;
      }
      socket.write(bytes, (error) => {
        if (error) onDropped(countLines(bytes));
        else takenCount++;
      });
      if (!isWatching) watchProgress();
    },
    async close(graceMs) {
      if (isClosed) return;
      isClosed = true;
      cancelReconnect();
      cancelDeadline();
      cancelBack();
      if (isConnected) {
        await new Promise<void>((resolve) => {
          const cancel = clock.after(graceMs, resolve);
          const done = () => {
            cancel();
            resolve();
          };
          socket.once('finish', done).once('close', done).end();
        });
      }
      socket.destroy();
    },
  };
}
