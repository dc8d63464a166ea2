// Reads from new connections some at a time, in the order in which they came. Until a client has finished its TLS
// handshake and accepted the server's settings it may make the server keep 64 KiB of headers, whatever the settings say,
// so few may do that at once. The others wait, and nothing is read from them: when thousands of workers come at once none
// of them is closed for that. Without TLS a client gets the settings at once, so that its answer is there when its turn
// comes.
import type { Socket } from 'node:net';
import type { Clock } from '../../../shared/clock.ts';

export interface Entrance {
  /** A new connection, which was paused when it came. */
  come(socket: Socket): void;
  /** The client at this address has done its part: there is room for the next one. */
  opened(address: PeerAddress): void;
  /** Ends those that wait. */
  close(): void;
}

/** Of a socket, or of one that stands for it: TLS and HTTP/2 hide the one that came. */
export type PeerAddress = Pick<Socket, 'remoteAddress' | 'remotePort'>;

export interface EntranceDeps {
  readonly clock: Clock;
  /** Connections that are opened at once. */
  readonly max: number;
  /** While others wait, one that takes longer since it came is closed. */
  readonly openingMs: number;
  /** Sends the bytes that a client gets before anything is read from it. */
  readonly greet: (socket: Socket) => void;
  readonly read: (socket: Socket) => void;
}

interface Opening {
  readonly socket: Socket;
  isLate: boolean;
  cancelTimer: () => void;
}

/** How long each is read at least, in two parts: what came while the process stood still in one of them is read in the
 * other. */
const readPartMs = 100;

export function createEntrance(deps: EntranceDeps): Entrance {
  const { clock, max, openingMs, greet, read } = deps;
  /** When they came, the first of them first. */
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

  /** False when there is none. */
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

  /** Apart from the listener above, which would keep the timer for as long as the connection. */
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
      // Its client is gone already, or it was closed for others.
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
