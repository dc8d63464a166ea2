// A real memcached for a test: on a free loopback port, with TLS if wanted; it can be killed and restarted, and called
// without the client under test.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect as connectTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import { endWithUs, hasEnded, kill } from './end-with-us.ts';
import { freePort } from './free-port.ts';
import type { Owner } from './owner.ts';
import { standStill } from './standstill.ts';

export type MemcachedServer = Awaited<ReturnType<typeof startMemcachedServer>>;

export interface MemcachedServerOptions {
  /** Paths; with a CA, clients need a certificate signed by it. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly clientCa?: string };
}

const host = '127.0.0.1';
const startDeadlineMs = 30_000;
/** Another test process may choose the same port. */
const portAttempts = 5;
const commandDeadlineMs = 30_000;

export async function startMemcachedServer(t: Owner, options: MemcachedServerOptions = {}) {
  const { tls } = options;
  let port = await freePort();
  let child = await startFirst();

  async function startFirst(): Promise<ChildProcess> {
    for (let attempt = 1; ; attempt++) {
      const started = await start();
      if (started !== undefined) return started;
      if (attempt === portAttempts) throw new Error('memcached does not start');
      port = await freePort();
    }
  }

  /** Undefined when the port is taken. */
  async function start(): Promise<ChildProcess | undefined> {
    const started = spawn(
      'memcached',
      [
        ...['-l', host, '-p', String(port), '-U', '0', '-t', '2', '-m', '16'],
        ...(process.getuid?.() === 0 ? ['-u', 'root'] : []),
        ...(tls === undefined ? [] : toTlsArguments(tls)),
      ],
      { stdio: 'ignore' },
    );
    await once(started, 'spawn');
    endWithUs(started);
    const giveUpAt = Date.now() + startDeadlineMs;
    for (;;) {
      try {
        if (await isOurs(started)) return started;
        started.kill('SIGKILL');
        return undefined;
      } catch (error) {
        if (hasEnded(started)) return undefined;
        if (Date.now() > giveUpAt) throw error;
        await sleep(10);
      }
    }
  }

  /** Whether it is `started` that answers. Its answer also proves that our connection is already counted: one that is
   * merely open would be counted at some later time, during the test. */
  async function isOurs(started: ChildProcess): Promise<boolean> {
    // We have no certificate for a query.
    if (tls?.clientCa !== undefined) {
      await openSocket(port).then((socket) => socket.destroy());
      return true;
    }
    return (await stats()).get('pid') === started.pid;
  }

  const end = () => kill(child);

  async function exchange(text: string, lastLines: readonly string[]): Promise<string> {
    const socket = tls === undefined ? await openSocket(port) : await openTlsSocket(port);
    socket.setTimeout(commandDeadlineMs, () => socket.destroy(new Error('memcached is silent')));
    try {
      socket.write(text);
      let answer = '';
      for await (const chunk of socket) {
        answer += (chunk as Buffer).toString();
        if (lastLines.some((line) => `\r\n${answer}`.endsWith(`\r\n${line}\r\n`))) return answer;
      }
      throw new Error(`memcached closed the connection after ${JSON.stringify(answer)}`);
    } finally {
      socket.destroy();
    }
  }

  async function stats(): Promise<ReadonlyMap<string, number>> {
    const rows = (await exchange('stats\r\n', ['END'])).matchAll(/^STAT (\S+) (\d+)\r$/gm);
    return new Map([...rows].map(([, name = '', value]) => [name, Number(value)]));
  }

  t.teardown(end);
  return {
    port,
    /** `host:port`. */
    url: `${host}:${port}`,
    /** Sends text over a separate connection; resolves with the answer up to one of the `lastLines`. */
    exchange,
    /** The value without trailing blanks, or undefined when there is none. */
    async get(key: string) {
      const [first, value] = (await exchange(`get ${key}\r\n`, ['END'])).split('\r\n');
      return first?.startsWith('VALUE') ? value?.trimEnd() : undefined;
    },
    async set(key: string, value: string) {
      await exchange(`set ${key} 0 0 ${Buffer.byteLength(value)}\r\n${value}\r\n`, ['STORED']);
    },
    /** Until the item expires; -1 for never, undefined when there is none. */
    async secondsToLive(key: string) {
      const [answer = ''] = (await exchange(`mg ${key} t\r\nmn\r\n`, ['MN'])).split('\r\n');
      const seconds = /^HD t(-?\d+)$/.exec(answer)?.[1];
      return seconds === undefined ? undefined : Number(seconds);
    },
    /** The server's own statistics. */
    stats,
    async flush() {
      await exchange('flush_all\r\n', ['OK']);
    },
    /** SIGKILL; resolves when the process is gone. */
    kill: end,
    /** Once it resolves, the server keeps its connections and sends nothing. */
    pause: () => standStill(child.pid as number),
    /** SIGCONT. */
    resume: () => {
      child.kill('SIGCONT');
    },
    /** Starts it again at the same address, empty, after `kill`. */
    async restart() {
      await end();
      const restarted = await start();
      if (restarted === undefined)
        throw new Error(`memcached does not start again on port ${port}`);
      child = restarted;
    },
    /** Idempotent. */
    stop: end,
  };
}

function toTlsArguments(tls: NonNullable<MemcachedServerOptions['tls']>): string[] {
  const verify =
    tls.clientCa === undefined ? [] : [`ssl_ca_cert=${tls.clientCa}`, 'ssl_verify_mode=2'];
  const extended = [`ssl_chain_cert=${tls.cert}`, `ssl_key=${tls.key}`, ...verify];
  return ['-Z', ...extended.flatMap((option) => ['-o', option])];
}

async function openSocket(port: number): Promise<Socket> {
  const socket = connectTcp({ port, host });
  await once(socket, 'connect');
  return socket;
}

async function openTlsSocket(port: number): Promise<Socket> {
  const socket = connectTls({ port, host, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  return socket;
}
