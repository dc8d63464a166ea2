// A loopback proxy between a client and a server that can lose replies, stall, and drop connections,
// as networks do.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export interface TcpProxy {
  readonly port: number;
  /** Connections accepted so far. */
  readonly accepted: number;
  /**
   * The next time the client sends something that contains `text`, the server gets all of it, but
   * its answer is cut: the client's connection is closed instead. Resolves then.
   */
  cutNextReply(text: string): Promise<void>;
  /** Connections from now on go to another server; those that are open stay as they are. */
  retarget(port: number): void;
  /** Passes nothing on, in either direction, until `flow`. */
  stall(): void;
  flow(): void;
  /** Closes all connections, at once. */
  dropAll(): void;
  close(): Promise<void>;
}

export interface TcpProxyOptions {
  /** How much later answers are passed on. */
  readonly replyDelayMs?: number;
  /** Told of all that the clients send. */
  readonly onRequest?: (chunk: Buffer) => void;
  /** Told of all that is passed on to them. */
  readonly onReply?: (chunk: Buffer) => void;
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

export async function startTcpProxy(
  targetPort: number,
  { replyDelayMs = 0, onRequest, onReply }: TcpProxyOptions = {},
): Promise<TcpProxy> {
  let target = targetPort;
  const pairs = new Set<Pair>();
  let accepted = 0;
  let stalled = false;
  let cut: { readonly text: string; readonly done: () => void } | undefined;

  const listener = createServer((client) => {
    accepted++;
    const pair = { client, server: connect(target, '127.0.0.1') };
    pairs.add(pair);
    let isCut = false;
    client.on('data', (chunk) => {
      onRequest?.(chunk);
      if (cut !== undefined && chunk.includes(cut.text)) {
        isCut = true;
        const { done } = cut;
        cut = undefined;
        pair.server.once('data', () => {
          end(pair);
          done();
        });
      }
      pair.server.write(chunk);
    });
    const reply = (chunk: Buffer) => {
      if (isCut) return;
      onReply?.(chunk);
      client.write(chunk);
    };
    pair.server.on('data', (chunk) => {
      if (replyDelayMs === 0) reply(chunk);
      else setTimeout(reply, replyDelayMs, chunk);
    });
    for (const socket of [client, pair.server]) {
      socket.setNoDelay(true);
      socket.on('error', () => end(pair));
      socket.on('close', () => end(pair));
    }
    if (stalled) pause(pair);
  });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  function end(pair: Pair): void {
    pairs.delete(pair);
    pair.client.destroy();
    pair.server.destroy();
  }

  function pause({ client, server }: Pair): void {
    client.pause();
    server.pause();
  }

  return {
    port: address.port,
    get accepted() {
      return accepted;
    },
    cutNextReply: (text) =>
      new Promise((done) => {
        cut = { text, done };
      }),
    retarget(port) {
      target = port;
    },
    stall() {
      stalled = true;
      for (const pair of pairs) pause(pair);
    },
    flow() {
      stalled = false;
      for (const { client, server } of pairs) {
        client.resume();
        server.resume();
      }
    },
    dropAll() {
      for (const pair of [...pairs]) end(pair);
    },
    async close() {
      for (const pair of [...pairs]) end(pair);
      listener.close();
      await once(listener, 'close');
    },
  };
}
