// Reads from new connections a few at a time, in the order of arrival.
//
// Until a client has finished its TLS handshake and accepted the server's settings, it can make the server buffer 64
// KiB of headers, whatever the settings are, so only a few may be in that state. The others wait unread: when thousands
// of workers connect at once, none of them is closed for waiting. Without TLS a client receives the settings at once,
// so that its answer has arrived when its turn comes.
import type { Socket } from 'node:net';
import type { Clock } from '../../../shared/clock.ts';

export interface Entrance {
  /** Handles a new connection, which is paused. */
  come(socket: Socket): void;
  /** The client at this address is set up: there is room for the next one. */
  opened(address: PeerAddress): void;
  /** Closes the waiting connections. */
  close(): void;
}

/** The address of a socket, or of a wrapper around it: TLS and HTTP/2 hide the accepted socket. */
export type PeerAddress = Pick<Socket, 'remoteAddress' | 'remotePort'>;

export interface EntranceDeps {
  readonly clock: Clock;
  /** The most connections that are set up at once. */
  readonly max: number;
  /** While others wait, a connection that takes longer than this since its arrival is closed. */
  readonly openingMs: number;
  /** Sends the bytes that a client receives before anything is read from it. */
  readonly greet: (socket: Socket) => void;
  readonly read: (socket: Socket) => void;
}

interface Opening {
  readonly socket: Socket;
  isLate: boolean;
  cancelTimer: () => void;
}

/** The minimum reading time of each connection, in two parts: bytes that arrived while the process was stalled in one
 * part are read in the other. */
const readPartMs = 100;

export function createEntrance(deps: EntranceDeps): Entrance {
  const { clock, max, openingMs, greet, read } = deps;
  /** Times of arrival, the oldest connection first. */
  const waiting = new Map<Socket, number>();
  /** The openings by address, the oldest first. */
  const openings = new Map<string, Opening>();

  function openNext(): void {
    for (const [socket, cameMs] of waiting) {
      if (openings.size >= max && !closeLate()) return;
      waiting.delete(socket);
      begin(socket, cameMs);
    }
  }

  /** False when no connection is late. */
  function closeLate(): boolean {
    const [oldest] = openings;
    if (oldest === undefined || !oldest[1].isLate) return false;
    end(oldest[0]);
    oldest[1].socket.destroy();
    return true;
  }

  function begin(socket: Socket, cameMs: number): void {
    const key = toKey(socket);
    openings.set(key, toOpening(socket, cameMs));
    socket.on('close', () => {
      if (openings.get(key)?.socket === socket) makeRoom(key);
    });
    read(socket);
  }

  /** Separate from the listener above, whose closure would keep the timer alive as long as the connection. */
  function toOpening(socket: Socket, cameMs: number): Opening {
    const leftMs = openingMs - (clock.monotonicMs() - cameMs);
    const opening: Opening = {
      socket,
      isLate: false,
      cancelTimer: clock.after(Math.max(readPartMs, leftMs - readPartMs), () => {
        opening.cancelTimer = clock.after(readPartMs, () => {
          opening.isLate = true;
          openNext();
        });
      }),
    };
    return opening;
  }

  function end(key: string): void {
    openings.get(key)?.cancelTimer();
    openings.delete(key);
  }

  function makeRoom(key: string): void {
    end(key);
    openNext();
  }

  return {
    come(socket) {
      // The client is already gone, or the connection was closed to make room.
      if (socket.remoteAddress === undefined || socket.destroyed) {
        socket.destroy();
        return;
      }
      waiting.set(socket, clock.monotonicMs());
      socket.on('close', () => waiting.delete(socket));
      greet(socket);
      openNext();
    },
    opened: (address) => makeRoom(toKey(address)),
    close() {
      for (const socket of waiting.keys()) socket.destroy();
      waiting.clear();
    },
  };
}

function toKey({ remoteAddress, remotePort }: PeerAddress): string {
  return `${remoteAddress} ${remotePort}`;
}
