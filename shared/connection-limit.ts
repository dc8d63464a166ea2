// How many connections a listener has at once. At the bound the one that is used least makes room for the
// next, so that no number of idle connections locks new callers out; TLS handshakes that are not finished
// have a smaller bound of their own, because each costs as much as a finished one and anybody may begin it.
// Where callers authenticate, those that have not are apart: they get a short time, and take nothing from
// those that have.
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

/** Those that have not authenticated: bounded apart, and the address that has most of them makes room. */
export interface UnauthenticatedLimit {
  readonly max: number;
  /** How long one of them may be open. */
  readonly limitMs: number;
}

export interface ConnectionLimitOptions {
  /** With `unauthenticated`, of those that have authenticated. */
  readonly max: number;
  /** Undefined: callers are not asked who they are. */
  readonly unauthenticated?: UnauthenticatedLimit | undefined;
  /** For a listener of TLS or HTTP/2: unfinished handshakes at once; the oldest makes room. */
  readonly maxHandshakes?: number;
  /** One was closed: the least used of `max`, or, when all of them wait for answers, the one that came
   * last. */
  readonly onClosed: (which: 'least used' | 'last come', max: number) => void;
  readonly clock?: Clock;
}

export interface ConnectionLimit {
  /** To be called when the connection may ask something, after its handshake. */
  use(socket: Socket, use: ConnectionUse): void;
  /** To be called when it is known who asks. */
  authenticated(socket: Socket): void;
}

export const maxUnfinishedHandshakes = 500;
/** For a TLS handshake: some round trips, to a far away client on a bad day. */
export const handshakeLimitMs = 5000;

/** Who has asked nothing for so long goes before those that have; until then, it has only just come. */
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
  /** How many its address has; 0 where that does not count. */
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
  /** TLS has a socket of its own on the one that came, and HTTP/2 hands out none: they are known by the
   * other end's address alone. */
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
    if (!takeIn(entry, first)) return;
    if (maxHandshakes !== undefined) {
      if (handshakes.size >= maxHandshakes) {
        const [oldest] = handshakes;
        oldest?.socket.destroy();
      }
      handshakes.add(entry);
    }
    entries.set(socket, entry);
    byAddress.set(address, entry);
    socket.once('close', leave);
  });

  /** False: it had to go itself. */
  function takeIn(entry: Entry, pool: Pool): boolean {
    const leaving = pool.join(entry);
    if (leaving === undefined) return true;
    if (leaving === entry) {
      entry.cancelTimer();
      // Not at once: the server has not looked at it yet.
      process.nextTick(() => entry.socket.destroy());
      onClosed('last come', pool.max);
      return false;
    }
    handshakes.delete(leaving);
    if (leaving.use?.close === undefined) leaving.socket.destroy();
    else leaving.use.close();
    onClosed('least used', pool.max);
    return true;
  }

  const find = (socket: Socket) => entries.get(socket) ?? byAddress.get(toAddress(socket));

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
      takeIn(entry, main);
    },
  };
}

interface PoolOptions {
  readonly max: number;
  readonly countsAddresses: boolean;
  readonly clock: Clock;
}

/** Connections under one bound. */
class Pool {
  readonly max: number;
  readonly #countsAddresses: boolean;
  readonly #clock: Clock;
  readonly #entries = new Set<Entry>();
  /** The least used ones when they were looked for, the least last: looking at all each time would cost
   * more than the connection. */
  #candidates: Candidate[] = [];
  /** All were busy: so many more are closed without another look. */
  #unlookedFor = 0;

  constructor({ max, countsAddresses, clock }: PoolOptions) {
    this.max = max;
    this.#countsAddresses = countsAddresses;
    this.#clock = clock;
  }

  /** The one that is to be closed for it, which may be itself. */
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
    if (this.#unlookedFor > 0) {
      this.#unlookedFor--;
      return undefined;
    }
    const entry = this.#nextCandidate() ?? this.#findCandidates();
    if (entry === undefined) this.#unlookedFor = Math.floor(this.max / 100);
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

/** The same for a server of HTTP or HTTPS, where it can be seen how connections are used. One that does not
 * authenticate is closed after its answer. */
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

/** What one customer of a network has: an address, or, of IPv6, the 64 bits that it chooses from. */
function toNetwork({ remoteAddress = '' }: Socket): string {
  if (!remoteAddress.includes(':') || remoteAddress.includes('.')) return remoteAddress;
  const [front = [], back = []] = remoteAddress.split('::').map((part) => part.split(':'));
  const zeros = Array<string>(Math.max(0, 8 - front.length - back.length)).fill('0');
  return [...front, ...zeros, ...back].slice(0, 4).join(':');
}
