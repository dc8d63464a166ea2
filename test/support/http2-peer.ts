// The client's side of an HTTP/2 connection at the lowest level: sends the bytes of a test, and collects the received
// frames. Nothing is answered automatically, not even SETTINGS or PING.
import { once } from 'node:events';
import { connect as connectSocket, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import {
  type Frame,
  flags,
  frameTypes,
  preface,
  settingsAck,
  splitFrames,
  toSettings,
} from './http2-frames.ts';

export type Http2Peer = Awaited<ReturnType<typeof createHttp2Peer>>;

export interface GoAway {
  readonly lastStreamId: number;
  readonly code: number;
  readonly text: string;
}

export interface Http2PeerOptions {
  /** A port of the loopback. */
  readonly port: number;
  /** PEM; if set, the connection uses TLS. */
  readonly tls?: { readonly ca: string };
}

interface Waiter {
  /** Checks the current state; true when the condition is met. */
  readonly check: () => boolean;
}

/** Only guards against hanging: a busy machine may take long. */
const defaultTimeoutMs = 100_000;

export async function createHttp2Peer({ port, tls }: Http2PeerOptions) {
  const target = { host: '127.0.0.1', port };
  const socket: Socket =
    tls === undefined
      ? connectSocket(target)
      : connectTls({ ...target, ...tls, servername: 'localhost', ALPNProtocols: ['h2'] });
  const frames: Frame[] = [];
  const waiters = new Set<Waiter>();
  const sending = new Set<() => void>();
  let rest: Buffer = Buffer.alloc(0);
  let isEnded = false;

  const wake = () => {
    for (const waiter of waiters) if (waiter.check()) waiters.delete(waiter);
  };
  const end = () => {
    isEnded = true;
    for (const settle of sending) settle();
    wake();
  };
  socket.on('data', (chunk: Buffer) => {
    const split = splitFrames(rest.length === 0 ? chunk : Buffer.concat([rest, chunk]));
    rest = split.rest;
    frames.push(...split.frames);
    wake();
  });
  socket.on('error', end);
  socket.on('end', end);
  socket.on('close', end);
  await once(socket, tls === undefined ? 'connect' : 'secureConnect', {
    signal: AbortSignal.timeout(defaultTimeoutMs),
  });
  socket.setNoDelay(true);

  /** Resolves with the result of `check`; rejects when the connection or the time ends before. */
  function find<T>(what: string, timeoutMs: number, check: () => T | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail = (why: string) => reject(new Error(`${why} in vain for ${what}: ${describe()}`));
      const timer = setTimeout(() => {
        waiters.delete(waiter);
        fail(`waited ${timeoutMs} ms`);
      }, timeoutMs);
      const waiter: Waiter = {
        check() {
          const found = check();
          if (found === undefined && !isEnded) return false;
          clearTimeout(timer);
          if (found === undefined) fail('waited until the connection ended');
          else resolve(found);
          return true;
        },
      };
      waiters.add(waiter);
      wake();
    });
  }

  /** The last frames, for the message of a failing test. */
  function describe(): string {
    const names = Object.entries(frameTypes);
    const shown = frames.slice(-10).map(({ type, flags: bits, streamId, payload }) => {
      const name = names.find(([, code]) => code === type)?.[0] ?? `type ${type}`;
      return `${name} flags ${bits} stream ${streamId} ${payload.subarray(0, 16).toString('hex')}`;
    });
    return `of ${frames.length} frames the last were [${shown.join('; ')}]`;
  }

  const peer = {
    /** All received frames, in order. */
    frames,
    /** True when the server has ended or cut the connection. */
    get isEnded() {
      return isEnded;
    },
    /** The number of sent bytes that the server's end of the connection has not accepted yet. */
    get unsentBytes() {
      return socket.writableLength;
    },
    /** Sends preface and SETTINGS; resolves when the server's SETTINGS have arrived and are acknowledged. */
    async greet(settings?: Readonly<Record<number, number>>) {
      peer.send(preface, toSettings(settings));
      await peer.frame('SETTINGS', ({ type, flags: bits }) => {
        return type === frameTypes.settings && bits === flags.none;
      });
      peer.send(settingsAck);
    },
    send(...bytes: readonly Buffer[]) {
      if (socket.writable) socket.write(Buffer.concat(bytes));
    },
    /** Sends, and resolves when the socket has accepted all bytes, or the connection is over. */
    sendAll(bytes: Buffer) {
      return new Promise<void>((resolve) => {
        if (!socket.writable) {
          resolve();
          return;
        }
        // The callback is not called when the socket is destroyed before it has sent all.
        const settle = () => {
          sending.delete(settle);
          resolve();
        };
        sending.add(settle);
        socket.write(bytes, settle);
      });
    },
    /** Reads nothing more from the socket, like a slow reader, until `resume`. */
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    /** The first frame, including past ones, for which `match` holds. */
    frame: (what: string, match: (frame: Frame) => boolean, timeoutMs = defaultTimeoutMs) =>
      find(what, timeoutMs, () => frames.find(match)),
    /** The messages in the stream's DATA frames, when the server has ended the stream successfully. */
    async answer(streamId: number, timeoutMs = defaultTimeoutMs) {
      const of = (frame: Frame) => frame.streamId === streamId;
      const last = await peer.frame(
        `the end of stream ${streamId}`,
        (frame) =>
          of(frame) &&
          (frame.type === frameTypes.rstStream ||
            (frame.type <= frameTypes.headers && (frame.flags & flags.endStream) !== 0)),
        timeoutMs,
      );
      if (last.type === frameTypes.rstStream) {
        throw new Error(`stream ${streamId} was reset: ${last.payload.readUInt32BE()}`);
      }
      return Buffer.concat(
        frames.filter((frame) => of(frame) && frame.type === 0).map(({ payload }) => payload),
      );
    },
    /** The code and last stream of the last GOAWAY, which is the one that counts. */
    async goAway(timeoutMs = defaultTimeoutMs) {
      await peer.frame('GOAWAY', ({ type }) => type === frameTypes.goAway, timeoutMs);
      const { payload } = frames.findLast(({ type }) => type === frameTypes.goAway) as Frame;
      return {
        lastStreamId: payload.readUInt32BE(0) % 2 ** 31,
        code: payload.readUInt32BE(4),
        text: payload.toString('utf8', 8),
      };
    },
    /** Resolves when the server has ended or cut the connection. */
    ended: async (timeoutMs = defaultTimeoutMs) => {
      await find('the end of the connection', timeoutMs, () => isEnded || undefined);
    },
    close: () => void socket.destroy(),
  };
  return peer;
}
