// Sends lines in UDP datagrams, several in each (behaviour: pushed-lines).
import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { errorText } from '../../shared/errors.ts';
import type { LineReceiverDeps, LineTransport } from './line-sink.ts';

/** Fits into an Ethernet frame with headers. */
const maxDatagramBytes = 1432;
const maxWaitingBytes = 4 * 1024 * 1024;
/** How long until a name that did not resolve, or a refused address, is tried again. */
const reopenMs = 3000;
/** A missing receiver shows, if at all, as an error after sending: without one for this long it counts as
 * present. */
const quietMs = 5000;

/** Starts looking up the host at once. */
export function createUdpLines(deps: LineReceiverDeps): LineTransport {
  const { host, port, family, clock, onLost, onBack } = deps;
  let socket: Socket | undefined;
  let isClosed = false;
  let sendingCount = 0;
  let noteIdle = () => {};
  let cancelTimer = () => {};

  async function open(): Promise<void> {
    try {
      const found = await lookup(host, { family });
      if (isClosed) return;
      const opened = createSocket(found.family === 6 ? 'udp6' : 'udp4');
      opened.on('error', (error) => reopen(opened, error.message));
      opened.connect(port, found.address, () => {
        if (isClosed) return;
        socket = opened;
        cancelTimer();
        cancelTimer = clock.after(quietMs, onBack);
      });
    } catch (error) {
      reopen(undefined, errorText(error));
    }
  }

  /** The address is looked up again: it may have changed. */
  function reopen(failed: Socket | undefined, reason: string): void {
    if (isClosed) return;
    onLost(reason);
    if (failed !== undefined) closeSocket(failed);
    socket = undefined;
    cancelTimer();
    cancelTimer = clock.after(reopenMs, () => void open());
  }

  void open();
  return {
    get ready() {
      return socket !== undefined && socket.getSendQueueSize() < maxWaitingBytes;
    },
    send(lines) {
      const current = socket;
      if (current === undefined) return;
      for (const datagram of toDatagrams(Buffer.from(lines))) {
        sendingCount++;
        current.send(datagram, (error) => {
          sendingCount--;
          if (sendingCount === 0) noteIdle();
          if (error !== null && socket === current) reopen(current, error.message);
        });
      }
    },
    async close(graceMs) {
      if (isClosed) return;
      isClosed = true;
      cancelTimer();
      const last = socket;
      socket = undefined;
      if (last === undefined) return;
      if (sendingCount > 0) {
        await new Promise<void>((resolve) => {
          const cancel = clock.after(graceMs, resolve);
          noteIdle = () => {
            cancel();
            resolve();
          };
        });
      }
      closeSocket(last);
    },
  };
}

function closeSocket(socket: Socket): void {
  socket.removeAllListeners('error').on('error', () => {});
  socket.close();
}

/** Cuts between lines; a line longer than a datagram should be goes alone. */
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
