// A loopback proxy between a client and a server that simulates network faults: it delays, holds back, drips, cuts and
// resets connections.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import type { Owner } from './owner.ts';

/** A fault of every connection, present and future, until `heal`. */
export type Fault =
  /** Answers are forwarded with this delay. */
  | { readonly kind: 'latency'; readonly ms: number }
  /** A black hole: connections stay and are accepted, and nothing passes in either direction. Held-back data is
   * forwarded after `heal`, as with TCP. */
  | { readonly kind: 'stall' }
  /** Answers are forwarded in pieces of this many bytes. */
  | { readonly kind: 'drip'; readonly bytes: number; readonly everyMs: number }
  /** RST, at once. */
  | { readonly kind: 'reset' }
  /** The client's receiving side is closed; what it sends still reaches the server. */
  | { readonly kind: 'half-close' }
  /** Half of each connection's next answer is forwarded, then the connection ends. */
  | { readonly kind: 'cut' };

export type TcpProxy = Awaited<ReturnType<typeof startTcpProxy>>;

export interface TcpProxyOptions {
  /** Called with all data that the clients send. */
  readonly onRequest?: (chunk: Buffer) => void;
  /** Called with all data that is forwarded to them. */
  readonly onReply?: (chunk: Buffer) => void;
}

/** A connection of the client, with the corresponding one to the server. */
interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly replies: Replies;
  /** Handles the server's answers. */
  onReply: (chunk: Buffer) => void;
}

export async function startTcpProxy(
  t: Owner,
  targetPort: number,
  { onRequest, onReply }: TcpProxyOptions = {},
) {
  let target = targetPort;
  const pairs = new Set<Pair>();
  let accepted = 0;
  let fault: Fault | undefined;
  let replyToCut: { readonly text: string; readonly done: () => void } | undefined;

  const listener = createServer({ allowHalfOpen: true }, (client) => {
    accepted++;
    const server = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true });
    const replies = createReplies(client, () => fault, onReply);
    const pair: Pair = { client, server, replies, onReply: (chunk) => pass(pair, chunk) };
    pairs.add(pair);
    client.on('data', (chunk) => {
      onRequest?.(chunk);
      if (replyToCut !== undefined && chunk.includes(replyToCut.text)) {
        const { done } = replyToCut;
        replyToCut = undefined;
        pair.onReply = () => {
          end(pair);
          done();
        };
      }
      server.write(chunk);
    });
    client.on('end', () => server.end());
    server.on('data', (chunk) => pair.onReply(chunk));
    server.on('end', replies.end);
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', () => end(pair));
      socket.on('close', () => {
        if (client.closed && server.closed) end(pair);
      });
    }
    apply(pair);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  function end(pair: Pair): void {
    pairs.delete(pair);
    pair.replies.drop();
    pair.client.destroy();
    pair.server.destroy();
  }

  function pass(pair: Pair, chunk: Buffer): void {
    if (fault?.kind !== 'cut') {
      pair.replies.add(chunk);
      return;
    }
    pair.onReply = () => {};
    pair.client.end(chunk.subarray(0, chunk.length >> 1), () => end(pair));
  }

  function apply(pair: Pair): void {
    const { client, server, replies } = pair;
    const kind = fault?.kind;
    for (const socket of [client, server]) {
      if (kind === 'stall') socket.pause();
      else socket.resume();
    }
    if (kind === 'half-close') {
      pair.onReply = () => {};
      client.end();
    }
    if (kind === 'reset') {
      client.resetAndDestroy();
      end(pair);
    }
    replies.pass();
  }

  function change(next: Fault | undefined): void {
    fault = next;
    for (const pair of [...pairs]) apply(pair);
  }

  const close = async () => {
    for (const pair of [...pairs]) end(pair);
    if (!listener.listening) return;
    listener.close();
    await once(listener, 'close');
  };
  t.teardown(close);
  return {
    port: address.port,
    /** Connections accepted so far. */
    get accepted() {
      return accepted;
    },
    /** Those of them that have not ended. */
    get open() {
      return pairs.size;
    },
    /** Replaces the current fault. */
    inject: change,
    heal: () => change(undefined),
    /** The next time the client sends data that contains `text`, the server gets all of it, but its answer is cut: the
     * client's connection is closed instead. Resolves then. */
    cutNextReply: (text: string) =>
      new Promise<void>((done) => {
        replyToCut = { text, done };
      }),
    /** New connections go to another server; open ones stay unchanged. */
    retarget(port: number) {
      target = port;
    },
    /** Closes all connections, at once. */
    dropAll() {
      for (const pair of [...pairs]) end(pair);
    },
    close,
  };
}

type Replies = ReturnType<typeof createReplies>;

/** The server's answers, in order, as late and as slowly as the fault requires. */
function createReplies(
  client: Socket,
  fault: () => Fault | undefined,
  onReply: ((chunk: Buffer) => void) | undefined,
) {
  let waiting: { readonly chunk: Buffer; readonly arrivedMs: number }[] = [];
  let isEnding = false;
  let lastDripMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;

  function pass(): void {
    clearTimeout(timer);
    for (let first = waiting.shift(); first !== undefined; first = waiting.shift()) {
      const current = fault();
      const waitMs = waitOf(current, first.arrivedMs);
      if (waitMs > 0) {
        waiting.unshift(first);
        timer = setTimeout(pass, waitMs);
        return;
      }
      const length = current?.kind === 'drip' ? current.bytes : first.chunk.length;
      const piece = first.chunk.subarray(0, length);
      const rest = first.chunk.subarray(length);
      if (rest.length > 0) waiting.unshift({ ...first, chunk: rest });
      lastDripMs = performance.now();
      onReply?.(piece);
      if (client.writable) client.write(piece);
    }
    if (isEnding) client.end();
  }

  function waitOf(current: Fault | undefined, arrivedMs: number): number {
    const nowMs = performance.now();
    if (current?.kind === 'latency') return arrivedMs + current.ms - nowMs;
    if (current?.kind === 'drip') return lastDripMs + current.everyMs - nowMs;
    return 0;
  }

  return {
    add(chunk: Buffer) {
      waiting.push({ chunk, arrivedMs: performance.now() });
      pass();
    },
    /** No more data will be added: the client's side is closed once it has everything. */
    end() {
      isEnding = true;
      pass();
    },
    /** Forwards what is allowed; call when the fault has changed. */
    pass,
    drop() {
      clearTimeout(timer);
      waiting = [];
    },
  };
}
