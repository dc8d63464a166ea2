// Limits how many connections a listener has at once. At the limit the least used one is closed for the next, so that
// idle connections never lock new callers out. Unfinished TLS handshakes have a smaller limit of their own: each costs
// as much as a finished one, and any client can start one. Where callers authenticate, unauthenticated connections are
// counted apart: they get a short time, and never displace authenticated ones.
import type { Server as HttpServer, IncomingMessage, ServerResponse } from 'node:http';
import type { Server, Socket } from 'node:net';
import { type Clock, systemClock } from './clock.ts';

/** How a connection is used; read when one has to be closed. */
export interface ConnectionUse {
  /** Monotonic time of its last request; undefined before the first. */
  readonly lastAskedMs: number | undefined;
  /** It waits for an answer: it is never closed for another. */
  readonly isBusy: boolean;
  /** Closes it in an orderly way; without `close` the socket is destroyed. */
  readonly close?: () => void;
}

/** The limit of unauthenticated connections; at the limit the address with most of them loses one. */
export interface UnauthenticatedLimit {
  readonly max: number;
  /** How long a connection may stay unauthenticated. */
  readonly limitMs: number;
}

export interface ConnectionLimitOptions {
  /** With `unauthenticated`, the limit of authenticated connections alone. */
  readonly max: number;
  /** Undefined if callers do not authenticate. */
  readonly unauthenticated?: UnauthenticatedLimit | undefined;
  /** Unfinished handshakes of TLS or HTTP/2 at once; at the limit the oldest is closed. */
  readonly maxHandshakes?: number;
  /** Called when a connection was closed: the least used of `max`, or the newest when all others wait for answers. */
  readonly onClosed: (which: 'least used' | 'newest', max: number) => void;
  readonly clock?: Clock;
}

export interface ConnectionLimit {
  /** Call it after the handshake, when requests may arrive. */
  use(socket: Socket, use: ConnectionUse): void;
  /** Call it when the caller has authenticated. */
  authenticated(socket: Socket): void;
}

export const maxUnfinishedHandshakes = 500;
/** Enough for a TLS handshake with a distant client on a bad network. */
export const handshakeLimitMs = 5000;

/**
 * A connection without a request for this long is closed before those with one; a younger one is not closed for its
 * silence.
 */
const silenceMs = 1000;

interface Entry {
  readonly socket: Socket;
  readonly cameMs: number;
  pool: Pool;
  use: ConnectionUse | undefined;
  cancelTimer: () => void;
}

interface Candidate {
  readonly entry: Entry;
  /** The number of connections of the same network; 0 if they are not counted. */
  readonly share: number;
  readonly isSilent: boolean;
  readonly sinceMs: number;
}

export function limitConnections(
  server: Server,
  { max, unauthenticated, maxHandshakes, onClosed, clock = systemClock }: ConnectionLimitOptions,
): ConnectionLimit {
  const main = new Pool({ max, countsAddresses: false, clock });
  const first =
    unauthenticated === undefined
      ? main
      : new Pool({ max: unauthenticated.max, countsAddresses: true, clock });
  const entries = new Map<Socket, Entry>();
  /** HTTP/2 does not expose its socket: it is found by the peer's address. */
  const byAddress = new Map<string, Entry>();
  const handshakes = new Set<Entry>();

  server.prependListener('connection', (socket: Socket) => {
    const address = toAddress(socket);
    const entry: Entry = {
      ...{ socket, cameMs: clock.monotonicMs(), pool: first, use: undefined },
      cancelTimer:
        unauthenticated === undefined
          ? () => {}
          : clock.after(unauthenticated.limitMs, () => socket.destroy()),
    };
    const leave = () => {
      entry.cancelTimer();
      entry.pool.leave(entry);
      entries.delete(socket);
      handshakes.delete(entry);
      if (byAddress.get(address) === entry) byAddress.delete(address);
    };
    if (!admit(entry, first)) return;
    if (maxHandshakes !== undefined) {
      if (handshakes.size >= maxHandshakes) {
        const [oldest] = handshakes;
        if (oldest !== undefined) handshakes.delete(oldest);
        oldest?.socket.destroy();
      }
      handshakes.add(entry);
    }
    entries.set(socket, entry);
    byAddress.set(address, entry);
    socket.on('close', leave);
  });

  /** False when the new connection itself was closed. */
  function admit(entry: Entry, pool: Pool): boolean {
    const leaving = pool.join(entry);
    if (leaving === undefined) return true;
    if (leaving === entry) {
      entry.cancelTimer();
      // Deferred: the server has not seen the connection yet.
      process.nextTick(() => entry.socket.destroy());
      onClosed('newest', pool.max);
      return false;
    }
    handshakes.delete(leaving);
    if (leaving.use?.close === undefined) leaving.socket.destroy();
    else leaving.use.close();
    onClosed('least used', pool.max);
    return true;
  }

  const find = (socket: Socket) =>
    entries.get(toAccepted(socket)) ?? byAddress.get(toAddress(socket));

  return {
    use(socket, use) {
      const entry = find(socket);
      if (entry === undefined) return;
      entry.use = use;
      handshakes.delete(entry);
    },
    authenticated(socket) {
      const entry = find(socket);
      if (entry === undefined || entry.pool === main) return;
      entry.cancelTimer();
      entry.pool.leave(entry);
      entry.pool = main;
      admit(entry, main);
    },
  };
}

interface PoolOptions {
  readonly max: number;
  readonly countsAddresses: boolean;
  readonly clock: Clock;
}

/** Connections that share one limit. */
class Pool {
  readonly max: number;
  readonly #countsAddresses: boolean;
  readonly #clock: Clock;
  readonly #entries = new Set<Entry>();
  /**
   * The least used connections of the last scan, least used last: a scan for each new connection would cost more than
   * the connection.
   */
  #candidates: Candidate[] = [];
  /** How many more connections are closed without another scan, after a scan that found all busy. */
  #skipsLeft = 0;

  constructor({ max, countsAddresses, clock }: PoolOptions) {
    this.max = max;
    this.#countsAddresses = countsAddresses;
    this.#clock = clock;
  }

  /** Returns the connection to close, which may be the new one. */
  join(entry: Entry): Entry | undefined {
    const leaving = this.#entries.size < this.max ? undefined : (this.#leastUsed() ?? entry);
    if (leaving !== undefined) this.#entries.delete(leaving);
    if (leaving !== entry) this.#entries.add(entry);
    return leaving;
  }

  leave(entry: Entry): void {
    this.#entries.delete(entry);
  }

  #leastUsed(): Entry | undefined {
    if (this.#skipsLeft > 0) {
      this.#skipsLeft--;
      return undefined;
    }
    const entry = this.#nextCandidate() ?? this.#findCandidates();
    if (entry === undefined) this.#skipsLeft = Math.floor(this.max / 100);
    return entry;
  }

  #nextCandidate(): Entry | undefined {
    const candidates = this.#candidates;
    for (let next = candidates.pop(); next !== undefined; next = candidates.pop()) {
      const { entry, sinceMs } = next;
      const isSame = sinceOf(entry) === sinceMs && !entry.use?.isBusy;
      if (isSame && this.#entries.has(entry)) return entry;
    }
    return undefined;
  }

  #findCandidates(): Entry | undefined {
    const nowMs = this.#clock.monotonicMs();
    const shares = new Map<string, number>();
    if (this.#countsAddresses) {
      for (const { socket } of this.#entries) {
        const network = toNetwork(socket);
        shares.set(network, (shares.get(network) ?? 0) + 1);
      }
    }
    for (const entry of this.#entries) {
      if (entry.use?.isBusy) continue;
      const isSilent = entry.use?.lastAskedMs === undefined && nowMs - entry.cameMs >= silenceMs;
      const share = this.#countsAddresses ? (shares.get(toNetwork(entry.socket)) ?? 0) : 0;
      this.#candidates.push({ entry, share, isSilent, sinceMs: sinceOf(entry) });
    }
    this.#candidates.sort(
      (left, right) =>
        left.share - right.share ||
        Number(left.isSilent) - Number(right.isSilent) ||
        right.sinceMs - left.sinceMs,
    );
    this.#candidates = this.#candidates.slice(-Math.ceil(this.max / 20));
    return this.#nextCandidate();
  }
}

export interface HttpConnectionLimitOptions extends ConnectionLimitOptions {
  readonly isTls: boolean;
  readonly unauthenticated?:
    | (UnauthenticatedLimit & { isAuthenticated(request: IncomingMessage): boolean })
    | undefined;
}

/**
 * Limits the connections of an HTTP or HTTPS server, whose requests show their use. An unauthenticated one is closed
 * after its answer.
 */
export function limitHttpConnections(
  server: HttpServer,
  options: HttpConnectionLimitOptions,
): void {
  const { isTls, unauthenticated, clock = systemClock } = options;
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
    if (unauthenticated?.isAuthenticated(request)) limit.authenticated(request.socket);
    else if (unauthenticated !== undefined) response.setHeader('connection', 'close');
  });
}

/** Busy while a complete request waits for its answer. */
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

/**
 * The accepted socket below a TLS socket. The field is not documented, but peers on a unix socket have no address by
 * which to find it.
 */
function toAccepted(socket: Socket & { readonly _parent?: Socket }): Socket {
  return socket._parent ?? socket;
}

function toAddress({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress}:${remotePort}`;
}

/** The addresses that one customer of a network controls: an IPv4 address, or a /64 of IPv6. */
function toNetwork({ remoteAddress = '' }: Socket): string {
  if (!remoteAddress.includes(':') || remoteAddress.includes('.')) return remoteAddress;
  const [front = [], back = []] = remoteAddress.split('::').map((part) => part.split(':'));
  const zeros = Array<string>(Math.max(0, 8 - front.length - back.length)).fill('0');
  return [...front, ...zeros, ...back].slice(0, 4).join(':');
}
