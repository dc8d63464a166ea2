// The gRPC transport over our own HTTP/2 engine: sockets, ticks and timers around sessions, which
// implement the protocol. shared/docs/behaviour.md describes it and its limits.
import type { Socket } from 'node:net';
// Imported, because a global is resolved at each use.
import process from 'node:process';
import type { ConnectionUse } from '../../../shared/connection-limit.ts';
import { createRepeatedLog } from '../../../shared/repeated-log.ts';
import { createAcceptor } from '../acceptor.ts';
import { LargeRequests } from '../large-requests.ts';
import type { GrpcTransport, GrpcTransportDeps, GrpcTransportOptions } from '../transport.ts';
import { farewellHeaders } from './answer-blocks.ts';
import { maxHeldBytes, maxUnsentBytes, noProgressMs, stalledMs } from './limits.ts';
import { Session } from './session.ts';

/** How often sessions check the clock: while calls with a deadline wait, and otherwise. */
const deadlineSweepMs = 25;
const idleSweepMs = 1000;
/** Jitter of a tenth either way, so that connections opened together do not close together. */
const ageSpread = 0.1;
/** The longest delay of a timer, about 24 days. */
const longestTimerMs = 0x7fff_ffff;
/** Time for the peer to close after the last bytes. */
const closeMs = 1000;

interface Connection {
  readonly socket: Socket;
  readonly session: Session;
  /** Unsent bytes at the last check that found some, and since when that number is unchanged. */
  unsentBytes: number;
  unsentSinceMs: number | undefined;
}

export function createHttp2Transport(
  {
    methods,
    log,
    clock,
    onRefused,
    keepsHeaders = true,
    largeRequests = new LargeRequests(() => clock.monotonicMs()),
  }: GrpcTransportDeps,
  options: GrpcTransportOptions,
): GrpcTransport {
  const { maxConnectionAgeMs, maxConnectionAgeGraceMs } = options;
  // TLS always keeps its input for a while. Copying these few bytes costs less than a new buffer, whose
  // memory triggers full collections in V8.
  const isCopied = options.tls !== undefined;
  const connections = new Set<Connection>();
  const acceptor = createAcceptor({
    names: options.names,
    target: options.target,
    tls: options.tls,
    maxConnections: options.maxConnections,
    log,
    clock,
    onRefused,
    onConnection: serve,
  });
  const repeatedLog = createRepeatedLog({ clock, write: log.warning, again: 'in-time' });
  /** Connections with output that waits for the end of this tick. */
  let withOutput: Connection[] = [];
  let cancelSweep: (() => void) | undefined;
  let sweepIsSoon = false;
  /** Bytes of incomplete messages on all connections. */
  let unfinishedBytes = 0;
  let isRelieving = false;
  let isTurningAway = false;
  let stopping: Promise<void> | undefined;

  function serve(socket: Socket): ConnectionUse {
    const session = new Session({
      methods,
      clock,
      largeRequests,
      keepsHeaders,
      maxRequestBytes: options.maxRequestBytes,
      peer: () => toPeer(socket),
      onOutput() {
        if (withOutput.length === 0) process.nextTick(flushAll);
        withOutput.push(connection);
      },
      onHeld(bytes) {
        unfinishedBytes += bytes;
        if (unfinishedBytes <= maxHeldBytes || isRelieving) return;
        isRelieving = true;
        setImmediate(() => {
          isRelieving = false;
          relieve();
        });
      },
      onEnd: () => end(connection),
    });
    const connection: Connection = { socket, session, unsentBytes: 0, unsentSinceMs: undefined };
    connections.add(connection);
    if (isTurningAway) session.sender.answerHeaders = farewellHeaders;
    const cancelAge = maxConnectionAgeMs === undefined ? undefined : startAge(connection);
    socket.on('data', (chunk: Buffer) => {
      session.receive(chunk);
      flush(connection);
      if (session.hasDeadlines) scheduleSweep(true);
    });
    socket.on('drain', () => {
      if (session.ended) return;
      socket.resume();
      resume(session);
    });
    socket.once('end', () => socket.end());
    socket.once('close', () => {
      connections.delete(connection);
      cancelAge?.();
      session.close();
    });
    flush(connection);
    scheduleSweep(false);
    // A handshake may complete after the stop has begun.
    if (stopping !== undefined) session.drain();
    return {
      get lastAskedMs() {
        return session.lastAskedMs;
      },
      get isBusy() {
        return session.isBusy;
      },
      close() {
        session.leave();
        flush(connection);
        socket.destroySoon();
      },
    };
  }

  function flushAll(): void {
    const flushing = withOutput;
    withOutput = [];
    for (const connection of flushing) flush(connection);
  }

  function flush({ socket, session }: Connection): void {
    session.sender.outputTaken();
    const { output } = session;
    if (output.length === 0) return;
    if (!socket.writable) {
      output.reuse();
      return;
    }
    const bytes = output.take();
    socket.write(isCopied ? Buffer.from(bytes) : bytes);
    const isWritten = socket.writableLength === 0;
    if (isWritten || isCopied) output.reuse();
    else output.replace();
    if (isWritten) resume(session);
    // A peer that does not read is not read from until 'drain'.
    else if (socket.writableLength > maxUnsentBytes) socket.pause();
  }

  function end(connection: Connection): void {
    const { socket } = connection;
    // Not at once: the last frames are still in the output.
    process.nextTick(() => {
      flush(connection);
      socket.end();
      // Further input is ignored, but must be read so that the peer sees the end.
      socket.resume();
      const cancel = clock.after(closeMs, () => socket.destroy());
      socket.once('close', cancel);
    });
  }

  function startAge(connection: Connection): () => void {
    const jitter = 1 + ageSpread * (2 * Math.random() - 1);
    const ageMs = Math.min((maxConnectionAgeMs ?? 0) * jitter, longestTimerMs);
    let cancel = clock.after(ageMs, () => {
      connection.session.drain();
      if (maxConnectionAgeGraceMs === undefined) return;
      cancel = clock.after(Math.min(maxConnectionAgeGraceMs, longestTimerMs), () =>
        connection.socket.destroy(),
      );
    });
    return () => cancel();
  }

  function scheduleSweep(soon: boolean): void {
    if (cancelSweep !== undefined && (sweepIsSoon || !soon)) return;
    cancelSweep?.();
    sweepIsSoon = soon;
    cancelSweep = clock.after(soon ? deadlineSweepMs : idleSweepMs, sweep);
  }

  function sweep(): void {
    cancelSweep = undefined;
    const nowMs = clock.monotonicMs();
    let hasDeadlines = false;
    let bytes = 0;
    for (const connection of connections) {
      connection.session.sweep(nowMs, !connection.socket.isPaused());
      cutWhenStalled(connection, nowMs);
      hasDeadlines ||= connection.session.hasDeadlines;
      bytes += heldBytes(connection);
    }
    if (bytes > maxHeldBytes) relieve();
    if (connections.size > 0) scheduleSweep(hasDeadlines);
  }

  /** Cuts a peer that reads none of the bytes that were written to it. */
  function cutWhenStalled(connection: Connection, nowMs: number): void {
    const unsentBytes = connection.socket.writableLength;
    if (unsentBytes === 0) connection.unsentSinceMs = undefined;
    else if (connection.unsentSinceMs === undefined || unsentBytes < connection.unsentBytes) {
      connection.unsentSinceMs = nowMs;
    } else if (nowMs - connection.unsentSinceMs >= stalledMs) connection.socket.destroy();
    connection.unsentBytes = unsentBytes;
  }

  /**
   * Called when connections within their own limits together hold too much. The connection that is stalled
   * longest is cut first, then the one that holds most; never one that only waits for our answer.
   */
  function relieve(): void {
    const nowMs = clock.monotonicMs();
    const debts: Debt[] = [];
    let total = largeRequests.waitingBytes;
    for (const connection of connections) {
      const debt = toDebt(connection, nowMs);
      total += debt.bytes;
      if (debt.bytes > 0) debts.push(debt);
    }
    if (total <= maxHeldBytes) return;
    debts.sort(
      (left, right) =>
        Number(right.isOverdue) - Number(left.isOverdue) ||
        (left.isOverdue ? left.sinceMs - right.sinceMs : 0) ||
        right.bytes - left.bytes,
    );
    let count = 0;
    for (const { connection, bytes } of debts) {
      if (total <= maxHeldBytes) break;
      total -= bytes;
      count++;
      connections.delete(connection);
      connection.socket.destroy();
      connection.session.close();
    }
    const megabytes = maxHeldBytes / 2 ** 20;
    repeatedLog.report(
      `gRPC connections held more than ${megabytes} MiB of unfinished requests and answers that were not read: the ${count} that had been stalled for the longest, or held the most, were cut`,
    );
  }

  async function stopOnce(graceMs: number): Promise<void> {
    acceptor.stopAccepting();
    for (const { session } of connections) {
      session.endStreams('the server is stopping');
      session.drain();
    }
    const cancelTimer = clock.after(graceMs, () => acceptor.destroyConnections());
    await acceptor.closed();
    cancelTimer();
    cancelSweep?.();
    repeatedLog.flush();
  }

  return {
    start: () => acceptor.start(),
    replaceCertificates: (certificates) => acceptor.replaceCertificates(certificates),
    turnAway() {
      isTurningAway = true;
      for (const { session } of connections) session.sender.answerHeaders = farewellHeaders;
      return acceptor.hasConnections();
    },
    stop(graceMs) {
      stopping ??= stopOnce(graceMs);
      return stopping;
    },
  };
}

interface Debt {
  readonly connection: Connection;
  readonly bytes: number;
  readonly sinceMs: number;
  readonly isOverdue: boolean;
}

/** The bytes that the peer could release by continuing, those on the socket included. */
function toDebt(connection: Connection, nowMs: number): Debt {
  const { socket, session, unsentSinceMs = Infinity } = connection;
  const owed = session.owed;
  const bytes = owed.bytes + socket.writableLength;
  const sinceMs = Math.min(owed.sinceMs, socket.writableLength > 0 ? unsentSinceMs : Infinity);
  return { connection, bytes, sinceMs, isOverdue: nowMs - sinceMs >= noProgressMs };
}

/** The bytes that are held for one peer, beyond the base cost of a connection. */
function heldBytes({ socket, session }: Connection): number {
  return socket.writableLength + session.heldBytes;
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
