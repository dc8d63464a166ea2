// The gRPC transport over our own HTTP/2 engine: sockets, ticks and timers around sessions, which implement the
// protocol. shared/docs/behaviour.md describes it and its limits.
import type { Socket } from 'node:net';
// Imported, because a global is resolved at each use.
import process from 'node:process';
import type { ConnectionUse } from '../../../shared/connection-limit.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { createAcceptor } from '../acceptor.ts';
import { LargeRequests } from '../large-requests.ts';
import type { ListenAddress } from '../listen-address.ts';
import type {
  GrpcTransport,
  GrpcTransportDeps,
  GrpcTransportOptions,
  ServerCertificates,
} from '../transport.ts';
import { farewellHeaders } from './answer-blocks.ts';
import { maxOccupiedBytes, maxUnsentBytes, noProgressMs, stalledMs } from './limits.ts';
import { Session } from './session.ts';

/** How often sessions check the clock: with and without calls that have a deadline. */
const deadlineSweepMs = 25;
const idleSweepMs = 1000;
/** Jitter of a tenth in both directions, so that connections opened together do not close together. */
const ageSpread = 0.1;
/** The longest delay of a timer, about 24 days. */
const longestTimerMs = 0x7fff_ffff;
/** Time for the peer to close after the last bytes. */
const closeMs = 1000;

interface Connection {
  readonly socket: Socket;
  readonly session: Session;
  /** Unsent bytes at the last check that found some, and since when that number has not changed. */
  unsentBytes: number;
  unsentSinceMs: number | undefined;
}

export class Http2Transport implements GrpcTransport {
  readonly #methods;
  readonly #clock;
  readonly #storesHeaders;
  readonly #largeRequests;
  readonly #options;
  readonly #maxConnectionAgeMs;
  readonly #maxConnectionAgeGraceMs;
  /**
   * Copied, because TLS always retains its input for a while. Copying these few bytes costs less than a new buffer,
   * whose memory triggers full collections in V8.
   */
  readonly #isCopied;
  readonly #connections = new Set<Connection>();
  readonly #acceptor;
  readonly #repeatedLog;
  /** Connections with output that waits for the end of this tick. */
  #withOutput: Connection[] = [];
  #cancelSweep: (() => void) | undefined;
  #sweepIsSoon = false;
  /** Bytes of incomplete messages on all connections. */
  #unfinishedBytes = 0;
  #isRelieving = false;
  #isTurningAway = false;
  #stopping: Promise<void> | undefined;

  constructor(deps: GrpcTransportDeps, options: GrpcTransportOptions) {
    this.#methods = deps.methods;
    this.#clock = deps.clock;
    this.#storesHeaders = deps.storesHeaders ?? true;
    this.#largeRequests = deps.largeRequests ?? new LargeRequests(() => deps.clock.monotonicMs());
    this.#options = options;
    this.#maxConnectionAgeMs = options.maxConnectionAgeMs;
    this.#maxConnectionAgeGraceMs = options.maxConnectionAgeGraceMs;
    this.#isCopied = options.tls !== undefined;
    this.#acceptor = createAcceptor({
      names: options.names,
      target: options.target,
      tls: options.tls,
      maxConnections: options.maxConnections,
      log: deps.log,
      clock: deps.clock,
      onRefused: deps.onRefused,
      onConnection: (socket) => this.#serve(socket),
    });
    this.#repeatedLog = createRepeatedLog({
      clock: deps.clock,
      write: deps.log.warning,
      again: 'in-time',
    });
  }

  #serve(socket: Socket): ConnectionUse {
    const session = new Session({
      methods: this.#methods,
      clock: this.#clock,
      largeRequests: this.#largeRequests,
      storesHeaders: this.#storesHeaders,
      maxRequestBytes: this.#options.maxRequestBytes,
      peer: () => toPeer(socket),
      onOutput: () => {
        if (this.#withOutput.length === 0) process.nextTick(() => this.#flushAll());
        this.#withOutput.push(connection);
      },
      onOccupied: (bytes) => {
        this.#unfinishedBytes += bytes;
        if (this.#unfinishedBytes <= maxOccupiedBytes || this.#isRelieving) return;
        this.#isRelieving = true;
        setImmediate(() => {
          this.#isRelieving = false;
          this.#relieve();
        });
      },
      onEnd: () => this.#end(connection),
    });
    const connection: Connection = { socket, session, unsentBytes: 0, unsentSinceMs: undefined };
    this.#connections.add(connection);
    if (this.#isTurningAway) session.sender.answerHeaders = farewellHeaders;
    const cancelAge =
      this.#maxConnectionAgeMs === undefined ? undefined : this.#startAge(connection);
    socket.on('data', (chunk: Buffer) => {
      session.receive(chunk);
      this.#flush(connection);
      if (session.hasDeadlines) this.#scheduleSweep(true);
    });
    socket.on('drain', () => {
      if (session.ended) return;
      socket.resume();
      resume(session);
    });
    socket.once('end', () => socket.end());
    socket.once('close', () => {
      this.#connections.delete(connection);
      cancelAge?.();
      session.close();
    });
    this.#flush(connection);
    this.#scheduleSweep(false);
    // A handshake may complete after the stop has begun.
    if (this.#stopping !== undefined) session.drain();
    return {
      get lastAskedMs() {
        return session.lastAskedMs;
      },
      get isBusy() {
        return session.isBusy;
      },
      close: () => {
        session.leave();
        this.#flush(connection);
        socket.destroySoon();
      },
    };
  }

  #flushAll(): void {
    const flushing = this.#withOutput;
    this.#withOutput = [];
    for (const connection of flushing) this.#flush(connection);
  }

  #flush({ socket, session }: Connection): void {
    session.sender.outputWritten();
    const { output } = session;
    if (output.length === 0) return;
    if (!socket.writable) {
      output.reuse();
      return;
    }
    const bytes = output.drain();
    socket.write(this.#isCopied ? Buffer.from(bytes) : bytes);
    const isWritten = socket.writableLength === 0;
    if (isWritten || this.#isCopied) output.reuse();
    else output.replace();
    if (isWritten) resume(session);
    // Input of a peer that does not read is not read until 'drain'.
    else if (socket.writableLength > maxUnsentBytes) socket.pause();
  }

  #end(connection: Connection): void {
    const { socket } = connection;
    // Deferred: the last frames are still in the output.
    process.nextTick(() => {
      this.#flush(connection);
      socket.end();
      // Further input is ignored, but must be read so that the peer receives the end.
      socket.resume();
      const cancel = this.#clock.after(closeMs, () => socket.destroy());
      socket.once('close', cancel);
    });
  }

  #startAge(connection: Connection): () => void {
    const jitter = 1 + ageSpread * (2 * Math.random() - 1);
    const ageMs = Math.min((this.#maxConnectionAgeMs ?? 0) * jitter, longestTimerMs);
    let cancel = this.#clock.after(ageMs, () => {
      connection.session.drain();
      if (this.#maxConnectionAgeGraceMs === undefined) return;
      cancel = this.#clock.after(Math.min(this.#maxConnectionAgeGraceMs, longestTimerMs), () =>
        connection.socket.destroy(),
      );
    });
    return () => cancel();
  }

  #scheduleSweep(soon: boolean): void {
    if (this.#cancelSweep !== undefined && (this.#sweepIsSoon || !soon)) return;
    this.#cancelSweep?.();
    this.#sweepIsSoon = soon;
    this.#cancelSweep = this.#clock.after(soon ? deadlineSweepMs : idleSweepMs, () =>
      this.#sweep(),
    );
  }

  #sweep(): void {
    this.#cancelSweep = undefined;
    const nowMs = this.#clock.monotonicMs();
    let hasDeadlines = false;
    let bytes = 0;
    for (const connection of this.#connections) {
      connection.session.sweep(nowMs, !connection.socket.isPaused());
      this.#cutWhenStalled(connection, nowMs);
      hasDeadlines ||= connection.session.hasDeadlines;
      bytes += toOccupiedBytes(connection);
    }
    if (bytes > maxOccupiedBytes) this.#relieve();
    if (this.#connections.size > 0) this.#scheduleSweep(hasDeadlines);
  }

  /** Closes the connection of a peer that reads none of the bytes that were written to it. */
  #cutWhenStalled(connection: Connection, nowMs: number): void {
    const unsentBytes = connection.socket.writableLength;
    if (unsentBytes === 0) connection.unsentSinceMs = undefined;
    else if (connection.unsentSinceMs === undefined || unsentBytes < connection.unsentBytes) {
      connection.unsentSinceMs = nowMs;
    } else if (nowMs - connection.unsentSinceMs >= stalledMs) connection.socket.destroy();
    connection.unsentBytes = unsentBytes;
  }

  /**
   * Called when connections within their own limits hold too much together. Closes the one that has been stalled
   * longest first, then the one that holds most; never one that only waits for our answer.
   */
  #relieve(): void {
    const nowMs = this.#clock.monotonicMs();
    const debts: Debt[] = [];
    let total = this.#largeRequests.waitingBytes;
    for (const connection of this.#connections) {
      const debt = toDebt(connection, nowMs);
      total += debt.bytes;
      if (debt.bytes > 0) debts.push(debt);
    }
    if (total <= maxOccupiedBytes) return;
    debts.sort(
      (left, right) =>
        Number(right.isOverdue) - Number(left.isOverdue) ||
        (left.isOverdue ? left.sinceMs - right.sinceMs : 0) ||
        right.bytes - left.bytes,
    );
    let count = 0;
    for (const { connection, bytes } of debts) {
      if (total <= maxOccupiedBytes) break;
      total -= bytes;
      count++;
      this.#connections.delete(connection);
      connection.socket.destroy();
      connection.session.close();
    }
    const megabytes = maxOccupiedBytes / 2 ** 20;
    this.#repeatedLog.report(
      `gRPC connections held more than ${megabytes} MiB of unfinished requests and unread answers: the ${count} that had stalled longest, or held the most, were closed`,
    );
  }

  async #stopOnce(graceMs: number): Promise<void> {
    this.#acceptor.stopAccepting();
    for (const { session } of this.#connections) {
      session.endStreams('the server is stopping');
      session.drain();
    }
    const cancelTimer = this.#clock.after(graceMs, () => this.#acceptor.destroyConnections());
    await this.#acceptor.closed();
    cancelTimer();
    this.#cancelSweep?.();
    this.#repeatedLog.flush();
  }

  start(): Promise<ListenAddress> {
    return this.#acceptor.start();
  }

  replaceCertificates(certificates: ServerCertificates): void {
    this.#acceptor.replaceCertificates(certificates);
  }

  turnAway(): boolean {
    this.#isTurningAway = true;
    for (const { session } of this.#connections) session.sender.answerHeaders = farewellHeaders;
    return this.#acceptor.hasConnections();
  }

  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#stopOnce(graceMs);
    return this.#stopping;
  }
}

interface Debt {
  readonly connection: Connection;
  readonly bytes: number;
  readonly sinceMs: number;
  readonly isOverdue: boolean;
}

/** The bytes that the peer could release by continuing, including those on the socket. */
function toDebt(connection: Connection, nowMs: number): Debt {
  const { socket, session, unsentSinceMs = Infinity } = connection;
  const owed = session.owed;
  const bytes = owed.bytes + socket.writableLength;
  const sinceMs = Math.min(owed.sinceMs, socket.writableLength > 0 ? unsentSinceMs : Infinity);
  return { connection, bytes, sinceMs, isOverdue: nowMs - sinceMs >= noProgressMs };
}

/** The bytes held for one peer, beyond the base cost of a connection. */
function toOccupiedBytes({ socket, session }: Connection): number {
  return socket.writableLength + session.occupiedBytes;
}

/** Other peers get their turn before this peer's next requests are processed. */
function resume(session: Session): void {
  if (session.sender.isBlocked) setImmediate(() => session.sender.resume());
}

/** The peer's address in the format of gRPC libraries. */
function toPeer({ remoteAddress, remotePort }: Socket): string {
  if (remoteAddress === undefined) return 'unix:';
  const host = remoteAddress.includes(':') ? `[${remoteAddress}]` : remoteAddress;
  return `${host}:${remotePort}`;
}
