// A real redis-server for a test: on a free loopback port or a unix socket; it can be killed, stopped, continued and
// restarted, and called without the client library under test.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { endWithUs, hasEnded, kill } from './end-with-us.ts';
import { freePort } from './free-port.ts';
import type { Owner } from './owner.ts';
import { standStill } from './standstill.ts';

/** A RESP2 reply; an error reply becomes a rejection. */
export type RedisReply = string | number | null | RedisReply[];

export type RedisServer = Awaited<ReturnType<typeof startRedisServer>>;

export interface RedisServerOptions {
  /** Default: `redis-server`; otherwise the path of a server with the same protocol. */
  readonly program?: string;
  /** A unix socket instead of a port. */
  readonly unix?: boolean;
  /** Makes it a sentinel: the lines of its configuration file. */
  readonly sentinel?: readonly string[];
  /** The arguments for a second port with TLS. */
  readonly tls?: readonly string[] | undefined;
  /** Further arguments of redis-server; a function is called again when a port was taken meanwhile. */
  readonly args?: readonly string[] | (() => Promise<readonly string[]>);
  /** Sent by `command` before anything else. */
  readonly auth?: readonly string[];
}

/** Nothing is stored on disk, and a replica need not wait for others to connect. */
const serverSettings = [
  ...['--save', '', '--appendonly', 'no'],
  ...['--repl-diskless-sync-delay', '0'],
];
const startDeadlineMs = 30_000;
const commandDeadlineMs = 30_000;
/** Other test processes choose ports too, possibly the same ones. */
const startAttempts = 5;

export async function startRedisServer(t: Owner, options: RedisServerOptions = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'ratelane-redis-'));
  const socketPath = join(folder, 'redis.sock');
  let port = 0;
  let tlsPort: number | undefined;
  let target: Target = { path: socketPath };
  let furtherArgs: readonly string[] = [];
  let auth = options.auth;
  let child = await startSomewhere().catch(async (error: unknown) => {
    await rm(folder, { recursive: true, force: true });
    throw error;
  });

  async function startSomewhere(): Promise<ChildProcess> {
    for (let attempt = 1; ; attempt++) {
      if (!options.unix) {
        port = await freePort();
        target = { port, host: '127.0.0.1' };
      }
      tlsPort = options.tls && (await freePort());
      const { args = [] } = options;
      furtherArgs = typeof args === 'function' ? await args() : args;
      try {
        return await start();
      } catch (error) {
        if (attempt === startAttempts) throw error;
      }
    }
  }

  async function start(): Promise<ChildProcess> {
    const listening = [
      ...(options.unix
        ? ['--port', '0', '--unixsocket', socketPath]
        : ['--port', String(port), '--bind', '127.0.0.1']),
      ...(options.tls ? ['--tls-port', String(tlsPort), ...options.tls] : []),
    ];
    const args =
      options.sentinel === undefined
        ? [...listening, '--dir', folder, ...serverSettings]
        : [await writeSentinelFile(options.sentinel), '--sentinel', ...listening];
    const started = spawn(options.program ?? 'redis-server', [...args, ...furtherArgs], {
      stdio: 'ignore',
    });
    await once(started, 'spawn');
    endWithUs(started);
    try {
      await awaitAnswer(started);
    } catch (error) {
      await kill(started);
      throw error;
    }
    return started;
  }

  async function awaitAnswer(started: ChildProcess): Promise<void> {
    const giveUpAt = Date.now() + startDeadlineMs;
    for (;;) {
      try {
        const info = String(await exchange(target, auth, ['INFO', 'server']));
        const [, pid] = /process_id:(\d+)/.exec(info) ?? [];
        if (Number(pid) === started.pid) return;
        throw new StrangerError(`another server answers at port ${port}`);
      } catch (error) {
        // Any answer of the server shows that it is up.
        if (error instanceof RedisError && !error.message.startsWith('LOADING')) return;
        if (error instanceof StrangerError) throw error;
        if (hasEnded(started) || Date.now() > giveUpAt) throw error;
        await sleep(10);
      }
    }
  }

  /** A sentinel stores what it learns in its file. */
  async function writeSentinelFile(lines: readonly string[]): Promise<string> {
    const path = join(folder, 'sentinel.conf');
    await writeFile(path, [`dir ${folder}`, ...lines, ''].join('\n'));
    return path;
  }

  const stop = async () => {
    await kill(child);
    await rm(folder, { recursive: true, force: true });
  };
  t.teardown(stop);
  return {
    /** Undefined when it listens on a socket only. */
    port,
    /** Undefined without TLS. */
    tlsPort,
    /** `host:port`, or the socket's path. */
    url: options.unix ? socketPath : `127.0.0.1:${port}`,
    socketType: options.unix ? 'unix' : 'tcp',
    /** One command on a separate connection; rejects with the server's error text. */
    command: (...parts: (string | number)[]) => exchange(target, auth, parts.map(String)),
    /** Sets user and password, or the password only, for later commands. */
    authenticate: (...given: string[]) => {
      auth = given;
    },
    /** SIGKILL; resolves when the process is gone. */
    kill: () => kill(child),
    /** Once it resolves, the server keeps its connections and sends nothing. */
    pause: () => standStill(child.pid as number),
    /** SIGCONT. */
    resume: () => {
      child.kill('SIGCONT');
    },
    /** Starts it again at the same address, empty, after `kill`. */
    async restart() {
      await kill(child);
      child = await start();
    },
    /** Ends it and removes its folder. Idempotent. */
    stop,
  };
}

class RedisError extends Error {}
/** The server that answers is not the one that was started. */
class StrangerError extends Error {}

type Target = { path: string } | { port: number; host: string };

async function exchange(
  target: Target,
  auth: readonly string[] | undefined,
  parts: readonly string[],
): Promise<RedisReply> {
  const socket = connect(target);
  socket.setTimeout(commandDeadlineMs, () => socket.destroy(new Error('redis-server is silent')));
  try {
    await once(socket, 'connect');
    const commands = auth === undefined ? [parts] : [['AUTH', ...auth], parts];
    socket.write(commands.map(encode).join(''));
    const replies = await readReplies(socket, commands.length);
    return replies[replies.length - 1] ?? null;
  } finally {
    socket.destroy();
  }
}

function encode(parts: readonly string[]): string {
  const bulks = parts.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
  return `*${parts.length}\r\n${bulks.join('')}`;
}

async function readReplies(socket: Socket, count: number): Promise<RedisReply[]> {
  let text = '';
  for await (const chunk of socket) {
    text += (chunk as Buffer).toString('latin1');
    const replies: RedisReply[] = [];
    let offset = 0;
    while (replies.length < count) {
      const parsed = parse(text, offset);
      if (parsed === undefined) break;
      replies.push(parsed.reply);
      offset = parsed.end;
    }
    if (replies.length === count) return replies;
  }
  throw new Error('redis-server closed the connection');
}

/** One reply from `offset` of the bytes in `text`, or undefined when it is incomplete. */
function parse(text: string, offset: number): { reply: RedisReply; end: number } | undefined {
  const lineEnd = text.indexOf('\r\n', offset);
  if (lineEnd === -1) return undefined;
  const line = text.slice(offset + 1, lineEnd);
  let end = lineEnd + 2;
  switch (text[offset]) {
    case '-':
      throw new RedisError(line);
    case ':':
      return { reply: Number(line), end };
    case '$': {
      if (line === '-1') return { reply: null, end };
      const bulkEnd = end + Number(line);
      if (text.length < bulkEnd + 2) return undefined;
      return {
        reply: Buffer.from(text.slice(end, bulkEnd), 'latin1').toString(),
        end: bulkEnd + 2,
      };
    }
    case '*': {
      const items: RedisReply[] = [];
      for (let left = Number(line); left > 0; left--) {
        const item = parse(text, end);
        if (item === undefined) return undefined;
        items.push(item.reply);
        end = item.end;
      }
      return { reply: items, end };
    }
    default:
      return { reply: line, end };
  }
}
