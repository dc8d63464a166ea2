// Tests stores that answer with anything: a request is counted or fails with a reason, in time, and the next connection
// is clean. connection.test.ts and reply-reader.test.ts test their readers alone.
import { createServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { systemClock } from '../../shared/clock.ts';
import type { CounterStore } from '../../worker/counters/store.ts';
import { countOn, createHit } from '../support/counting.ts';
import { listenFor } from '../support/listen.ts';
import { createRecordedMemcachedStore } from '../support/memcached-store.ts';
import { createRandom, type Random } from '../support/random.ts';
import { createRecordedRedisStore } from '../support/redis-store.ts';
import { waitUntil } from '../support/wait-until.ts';
import { damageBytes } from './damage.ts';
import { fuzz } from './fuzz-run.ts';
import { checkNamedProblem } from './named-problem.ts';

const redisPieces = [
  ...[':1\r\n', ':0\r\n', ':-1\r\n', ':9223372036854775807\r\n', '+OK\r\n', '+PONG\r\n', '$-1\r\n'],
  ...[
    '$1\r\n5\r\n',
    '$3\r\nabc\r\n',
    '*0\r\n',
    '*-1\r\n',
    '*2\r\n:1\r\n:1\r\n',
    '*1\r\n*1\r\n*1\r\n',
  ],
  ...[
    '-ERR no\r\n',
    '-MOVED 1 127.0.0.1:1\r\n',
    '-ASK 1 x:1\r\n',
    '-READONLY You cannot\r\n',
    '\r\n',
  ],
  ...['-LOADING a\r\n', '-NOAUTH a\r\n', '-CLUSTERDOWN\r\n', '*99999999\r\n', '$4294967296\r\n'],
  ...[
    '$65537\r\n',
    '%1\r\n',
    '_\r\n',
    '#t\r\n',
    '>2\r\n',
    ':1',
    '+',
    '*3\r\n$6\r\nmaster\r\n:1\r\n*0\r\n',
  ],
];
const memcachedPieces = [
  ...[
    'END\r\n',
    'STORED\r\n',
    'NOT_STORED\r\n',
    'NOT_FOUND\r\n',
    'EXISTS\r\n',
    'DELETED\r\n',
    'OK\r\n',
  ],
  ...[
    '1\r\n',
    '18446744073709551615\r\n',
    '5   \r\n',
    'ERROR\r\n',
    'CLIENT_ERROR a\r\n',
    '\r\n',
    '-1\r\n',
  ],
  ...[
    'SERVER_ERROR out of memory\r\n',
    'VALUE k 0 1 2\r\n5\r\nEND\r\n',
    'VALUE k 0 3\r\nabc\r\nEND\r\n',
  ],
  ...[
    'VALUE k 0 99999999\r\n',
    'VALUE  0 1\r\n',
    'VALUE k 0 -1 1\r\n',
    'VERSION 1.6\r\n',
    'MN\r\n',
  ],
];

function toReplies(random: Random, pieces: readonly string[]): Buffer {
  const text = Array.from({ length: 1 + random.below(8) }, () => random.pick(pieces)).join('');
  const bytes = Buffer.from(text);
  return random.chance(0.5) ? damageBytes(random, bytes) : bytes;
}

function cut(random: Random, bytes: Buffer): Buffer[] {
  const chunks: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = 1 + random.below(random.pick([1, 5, bytes.length]));
    chunks.push(Buffer.from(bytes.subarray(at, at + length)));
    at += length;
  }
  return chunks;
}

interface HostileServer {
  readonly port: number;
  /** Generates the next answers; undefined: none are sent. */
  random: Random | undefined;
}

/** Greets as a store does and answers each request at random. */
async function startHostileServer(
  t: ExecutionContext,
  pieces: readonly string[],
  greet: (request: string) => string | undefined,
): Promise<HostileServer> {
  const sockets = new Set<Socket>();
  const hostile: { port: number; random: Random | undefined } = { port: 0, random: undefined };
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => {
      const greeting = greet(chunk.toString('latin1'));
      if (greeting !== undefined) {
        socket.write(greeting);
        return;
      }
      const { random } = hostile;
      if (random === undefined) return;
      for (const part of cut(random, toReplies(random, pieces))) socket.write(part);
      if (random.chance(0.4)) socket.destroy();
    });
  });
  hostile.port = await listenFor(t, server);
  return hostile;
}

const deadlineMs = 300;

async function countOnce(store: CounterStore, random: Random): Promise<void> {
  const hits = Array.from({ length: 1 + random.below(4) }, (_, index) =>
    createHit({
      key: `k${index}`,
      hits: random.pick([0, 1, 5, 2n ** 60n]),
      refund: random.chance(0.3),
      descriptorIndex: index,
    }),
  );
  const { error, after } = await countOn(store, hits, {
    deadlineMs: performance.now() + deadlineMs,
  });
  if (error !== undefined) {
    checkNamedProblem(error.message);
    return;
  }
  for (const value of after) if (!(value >= 0)) throw new Error(`a counter of ${value}`);
}

// Proof of SECURITY.md: is trusted for its counts; any other reply fails the decisions that wait for it, and nothing
// else
test.serial('a hostile Redis makes requests fail with a reason, and nothing else', async (t) => {
  const server = await startHostileServer(t, redisPieces, (request) => {
    if (/PING/i.test(request)) return '+PONG\r\n';
    return /INCRBY|EVAL|EXPIRE|GET/i.test(request) ? undefined : '+OK\r\n';
  });
  const store = createRecordedRedisStore(`127.0.0.1:${server.port}`, { timeoutMs: deadlineMs });
  t.teardown(() => store.close(0));
  await store.connect(AbortSignal.timeout(60_000));
  await fuzz(
    t,
    'requests to a hostile Redis',
    async (random) => {
      server.random = createRandom(random.below(2 ** 30));
      // Without a connection no request is sent to the server.
      await waitUntil(() => store.state().healthy, 1000, 1);
      await countOnce(store, random);
    },
    50,
  );
  for (const line of store.log.lines) checkNamedProblem(line);
  t.log(`${store.connections.total} connections, ${store.log.lines.length} lines of log`);
});

test.serial('a hostile memcached makes requests fail with a reason, nothing else', async (t) => {
  const server = await startHostileServer(t, memcachedPieces, () => undefined);
  // Its silence is a part of its hostility.
  const store = createRecordedMemcachedStore({
    urls: [`127.0.0.1:${server.port}`],
    clock: systemClock,
  });
  t.teardown(() => store.close(0));
  await store.connect(AbortSignal.timeout(60_000));
  await fuzz(
    t,
    'requests to a hostile memcached',
    async (random) => {
      server.random = createRandom(random.below(2 ** 30));
      await countOnce(store, random);
    },
    50,
  );
  for (const line of store.log.lines) checkNamedProblem(line);
  t.log(`${store.log.lines.length} lines of log`);
});
