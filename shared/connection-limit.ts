// How many connections a listener has at once. At the bound the one that is used least makes room for the
// next, so that no number of idle connections locks new callers out; TLS handshakes that are not finished
// have a smaller bound of their own, because each costs as much as a finished one and anybody may begin it.
import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { type Clock, systemClock } from './clock.ts';

/** How a connection is used; looked at when one has to make room. */
export interface ConnectionUse {
  /** When it asked something last, on the monotonic clock; undefined: nothing yet. */
  readonly lastAskedMs: number | undefined;
  /** It waits for an answer: it never makes room. */
  readonly isBusy: boolean;
  /** Ends it; without this it is cut. */
  readonly close?: () => void;
}

export interface ConnectionLimitOptions {
  readonly max: number;
  /** Of one remote address, where those of others must always find room. */
  readonly maxOfOneAddress?: number;
  /** For a listener of TLS: unfinished handshakes at once; the oldest makes room. */
  readonly maxHandshakes?: number;
  /** One was closed: the least used, or, when all of them wait for answers, the one that came last. */
  readonly onClosed: (which: 'least used' | 'last come') => void;
  readonly clock?: Clock;
}

export interface ConnectionLimit {
  /** To be called when the connection may ask something, after its handshake. */
  use(socket: Socket, use: ConnectionUse): void;
}

export const maxUnfinishedHandshakes = 500;
/** For a TLS handshake: some round trips, to a far away client on a bad day. */
export const handshakeLimitMs = 5000;

/** Who has asked nothing for so long goes before those that have; until then, it has only just come. */
const silenceMs = 1000;

interface Entry {
  readonly socket: Socket;
  /** All that came from its address. */
  readonly neighbours: Set<Entry>;
  readonly cameMs: number;
  use: ConnectionUse | undefined;
}

interface Candidate {
  readonly entry: Entry;
  readonly isSilent: boolean;
  readonly sinceMs: number;
}

export function limitConnections(
  server: Server,
  {
    max,
    maxOfOneAddress = max,
    maxHandshakes,
    onClosed,
    clock = systemClock,
  }: ConnectionLimitOptions,
): ConnectionLimit {
  const entries = new Map<Socket, Entry>();
  /** TLS has a socket of its own on the one that came, and HTTP/2 hands out none: they are known by the
   * other end's address alone. */
  const byAddress = new Map<string, Entry>();
  const handshakes = new Set<Entry>();
  /** By the address without the port. */
  const byHost = new Map<string | undefined, Set<Entry>>();
  /** The least used ones when they were looked for, the least last: looking at all each time would cost
   * more than the connection. */
  let candidates: Candidate[] = [];
  /** All were busy: so many more are closed without another look. */
  let unlookedFor = 0;

  server.prependListener('connection', (socket: Socket) => {
    const address = toAddress(socket);
    const host = socket.remoteAddress;
    const neighbours = byHost.get(host) ?? new Set();
    const entry: Entry = { socket, neighbours, cameMs: clock.monotonicMs(), use: undefined };
    const leave = () => {
      forget(entry);
      if (neighbours.size === 0 && byHost.get(host) === neighbours) byHost.delete(host);
      if (byAddress.get(address) === entry) byAddress.delete(address);
    };
    const hasRoom =
      (neighbours.size < maxOfOneAddress || makeRoomAmong(neighbours)) &&
      (entries.size < max || makeRoom());
    if (!hasRoom) {
      // Not at once: the server has not looked at it yet.
      process.nextTick(() => socket.destroy());
      onClosed('last come');
      return;
    }
    if (maxHandshakes !== undefined) {
      if (handshakes.size >= maxHandshakes) {
        const [oldest] = handshakes;
        oldest?.socket.destroy();
      }
      handshakes.add(entry);
    }
    entries.set(socket, entry);
    byAddress.set(address, entry);
    byHost.set(host, neighbours.add(entry));
    socket.once('close', leave);
  });

  function makeRoom(): boolean {
    if (unlookedFor > 0) {
      unlookedFor--;
      return false;
    }
    const entry = nextCandidate() ?? findCandidates();
    if (entry === undefined) {
      unlookedFor = Math.floor(max / 100);
      return false;
    }
    close(entry);
    return true;
  }

  function makeRoomAmong(neighbours: ReadonlySet<Entry>): boolean {
    // Where the bound of one is that of all, all are looked at, which is not done for each.
    const entry = maxOfOneAddress === max ? undefined : rank(neighbours).at(-1)?.entry;
    if (entry !== undefined) close(entry);
    return maxOfOneAddress === max || entry !== undefined;
  }

  function close(entry: Entry): void {
    forget(entry);
    if (entry.use?.close === undefined) entry.socket.destroy();
    else entry.use.close();
    onClosed('least used');
  }

  function nextCandidate(): Entry | undefined {
    for (let next = candidates.pop(); next !== undefined; next = candidates.pop()) {
      const { entry, sinceMs } = next;
      const isSame = sinceOf(entry) === sinceMs && !entry.use?.isBusy;
      if (isSame && entries.get(entry.socket) === entry) return entry;
    }
    return undefined;
  }

  function findCandidates(): Entry | undefined {
    candidates = rank(entries.values()).slice(-Math.ceil(max / 20));
    return nextCandidate();
  }

  function forget(entry: Entry): void {
    entries.delete(entry.socket);
    entry.neighbours.delete(entry);
    handshakes.delete(entry);
  }

  /** Those that may go, the least used last. */
  function rank(some: Iterable<Entry>): Candidate[] {
    const nowMs = clock.monotonicMs();
    const ranked: Candidate[] = [];
    for (const entry of some) {
      if (entry.use?.isBusy) continue;
      const isSilent = entry.use?.lastAskedMs === undefined && nowMs - entry.cameMs >= silenceMs;
      ranked.push({ entry, isSilent, sinceMs: sinceOf(entry) });
    }
    return ranked.sort(
      (left, right) =>
        Number(left.isSilent) - Number(right.isSilent) || right.sinceMs - left.sinceMs,
    );
  }

  return {
    use(socket, use) {
      const entry = entries.get(socket) ?? byAddress.get(toAddress(socket));
      if (entry === undefined) return;
      entry.use = use;
      handshakes.delete(entry);
    },
  };
}

/** The same for a server of HTTP or HTTPS, where it can be seen how connections are used. */
export function limitHttpConnections(
  server: HttpServer,
  options: ConnectionLimitOptions & { readonly isTls: boolean },
): void {
  const { isTls, clock = systemClock } = options;
  const limit = limitConnections(server, {
    ...options,
    ...(isTls ? { maxHandshakes: maxUnfinishedHandshakes } : {}),
  });
  const uses = new WeakMap<Socket, HttpUse>();
  server.on(isTls ? 'secureConnection' : 'connection', (socket: Socket) => {
    const use = new HttpUse();
    uses.set(socket, use);
    limit.use(socket, use);
  });
  server.prependListener('request', (request, response) => {
    uses.get(request.socket)?.asked(request, response, clock.monotonicMs());
  });
}

/** A request that has not come to its end does not wait for an answer. */
class HttpUse implements ConnectionUse {
  lastAskedMs: number | undefined;
  #request: IncomingMessage | undefined;
  #response: ServerResponse | undefined;

  asked(request: IncomingMessage, response: ServerResponse, nowMs: number): void {
    this.lastAskedMs = nowMs;
    this.#request = request;
    this.#response = response;
  }

  get isBusy(): boolean {
    return this.#request?.complete === true && this.#response?.writableFinished === false;
  }
}

function sinceOf({ use, cameMs }: Entry): number {
  return use?.lastAskedMs ?? cameMs;
}

function toAddress({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}
