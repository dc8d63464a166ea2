// One connection to one server, from its opening (authentication, database, PING) to its end: commands out,
// replies in, in order. It never reconnects and never sends anything twice; redis-lane.ts opens the next one.
//
// The client library opens it. Counting then bypasses the library, over its socket: a command object per
// increment costs more than all the rest of a decision.
import type { Socket } from 'node:net';
import { Redis } from 'ioredis';
import type { Clock } from '../../../shared/clock.ts';
import { conceal } from '../../../shared/conceal.ts';
import { errorText } from '../../../shared/errors.ts';
import type { Duration, Metrics } from '../../metrics.ts';
import { type StoreAddress, showStoreAddress } from './address.ts';
import type { CommandText } from './command-text.ts';
import type { ConnectionTls, TlsOptions } from './connection-tls.ts';
import type { Credentials, ReadCredentials } from './credentials.ts';
import { createReplyReader, type RawReply } from './reply-reader.ts';

export interface Connection {
  /**
   * Writes all commands at once. `done` is called once, never from inside `send`, with one reply per
   * command; those without a reply at the connection's end get errors.
   */
  send(commands: readonly CommandText[], done: (replies: RawReply[]) => void): void;
  /** Ends it at once, with everything in flight. */
  destroy(): void;
  /** Resolves, with the reason, when the connection has ended, whoever ended it. */
  readonly ended: Promise<string>;
  /** One command and its reply. Rejects with the server's error, and when no reply comes in time, which
   * ends the connection. */
  ask(command: CommandText): Promise<RawReply>;
}

export interface ConnectionDeps {
  readonly address: StoreAddress;
  /** The number of the database to select. */
  readonly database: number;
  readonly readCredentials: ReadCredentials;
  readonly tls: ConnectionTls | undefined;
  /** Time limit of the whole opening. */
  readonly timeoutMs: number;
  /** Undefined for servers that do not count. */
  readonly callDuration: Metrics['storeCallDuration'] | undefined;
  readonly clock: Clock;
}

const keepAliveMs = 10_000;

/**
 * Resolves when the server has answered PING with PONG. Rejects with an Error whose message says
 * what failed, without secrets.
 */
export function openConnection(deps: ConnectionDeps, signal: AbortSignal): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let redis: Redis | undefined;
    let lastError = '';
    let over = false;
    const cancelTimeout = deps.clock.after(deps.timeoutMs, () =>
      fail(new Error(`no answer to the attempt to connect in ${deps.timeoutMs} ms`)),
    );
    const onAbort = () => fail(new Error('the attempt to connect was given up'));
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    else open().then(succeed, fail);

    async function open(): Promise<Redis> {
      const credentials = await deps.readCredentials();
      const tls = await deps.tls?.readOptions(deps.address);
      if (over) throw new Error('the attempt to connect is over');
      redis = createClient(deps, tls);
      redis.on('error', (error) => {
        lastError = toConnectionText(error);
      });
      try {
        await redis.connect();
      } catch (error) {
        throw new Error(lastError || errorText(error));
      }
      await greet(redis, deps.database, credentials);
      return redis;
    }

    function fail(error: unknown): void {
      release();
      over = true;
      if (redis !== undefined) destroyClient(redis);
      reject(error);
    }

    function succeed(client: Redis): void {
      release();
      if (over || client.status !== 'ready') {
        fail(new Error(lastError || 'the connection was closed'));
        return;
      }
      const callDuration = deps.callDuration?.(showStoreAddress(deps.address));
      resolve(createConnection(client.stream, { ...deps, callDuration }));
    }

    function release(): void {
      cancelTimeout();
      signal.removeEventListener('abort', onAbort);
    }
  });
}

/** The client library must neither reconnect, nor queue, nor resend, nor greet by itself, so that nothing
 * is counted twice and simple proxies work (behaviour: never-sent-twice). */
function createClient({ address, timeoutMs }: ConnectionDeps, tls: TlsOptions | undefined): Redis {
  return new Redis({
    ...(address.kind === 'unix'
      ? { path: address.path }
      : { host: address.host, port: address.port }),
    ...(tls && { tls }),
    lazyConnect: true,
    retryStrategy: null,
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    enableReadyCheck: false,
    disableClientInfo: true,
    protocol: 2,
    connectTimeout: timeoutMs,
    noDelay: true,
    keepAlive: keepAliveMs,
  });
}

/** Authenticates here, since the client library only prints some refusals. */
async function greet(
  redis: Redis,
  database: number,
  credentials: Credentials | undefined,
): Promise<void> {
  const commands: [string, ...(string | number)[]][] = [];
  if (credentials) {
    const { username, password } = credentials;
    commands.push(username === undefined ? ['auth', password] : ['auth', username, password]);
  }
  if (database !== 0) commands.push(['select', database]);
  commands.push(['ping']);
  const replies = await Promise.all(
    commands.map((command) => redis.call(...command).catch((error: Error) => error)),
  );
  for (const [index, reply] of replies.entries()) {
    const name = commands[index]?.[0].toUpperCase();
    if (reply instanceof Error) {
      // Some servers quote the arguments of an unknown command.
      const secrets = credentials === undefined ? [] : [credentials.password];
      throw new Error(`${name}: ${conceal(reply.message, secrets)}`);
    }
    if (name === 'PING' && reply !== 'PONG') {
      throw new Error(`PING was answered with "${String(reply).slice(0, 80)}" instead of PONG`);
    }
  }
}

function destroyClient(redis: Redis): void {
  if (redis.status === 'end') return;
  redis.disconnect();
  // Without waiting for a server that may have stopped reading.
  redis.stream?.destroy();
}

/** A host name with several addresses fails with an error without text that contains the others. */
function toConnectionText(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(errorText).join(', ');
  }
  return errorText(error);
}

interface Sent {
  readonly count: number;
  readonly replies: RawReply[];
  readonly done: (replies: RawReply[]) => void;
  readonly sentMs: number;
}

interface CountingDeps extends Pick<ConnectionDeps, 'clock' | 'timeoutMs'> {
  readonly callDuration: Duration | undefined;
}

/** Takes over an open socket: nobody else may use it from now on. */
export function createConnection(
  socket: Socket,
  { clock, timeoutMs, callDuration }: CountingDeps,
): Connection {
  const unanswered: Sent[] = [];
  let reason: string | undefined;
  let tellEnd: (reason: string) => void = () => {};
  const ended = new Promise<string>((resolve) => {
    tellEnd = resolve;
  });
  const reader = createReplyReader(take);
  socket.removeAllListeners('data');
  socket.on('data', (chunk) => {
    const problem = reason === undefined ? reader.feed(chunk) : undefined;
    if (problem !== undefined) end(`the server sent ${problem}`);
  });
  socket.on('error', (error) => end(errorText(error)));
  socket.on('close', () => end('the connection was closed'));
  if (socket.destroyed) end('the connection was closed');
  return { send, destroy, ended, ask };

  function send(commands: readonly CommandText[], done: Sent['done']): void {
    const sent = { count: commands.length, replies: [], done, sentMs: clock.monotonicMs() };
    if (reason === undefined && commands.length > 0) {
      unanswered.push(sent);
      let text = '';
      for (const command of commands) text += command;
      socket.write(text, 'latin1');
    } else {
      setImmediate(fail, sent);
    }
  }

  function ask(command: CommandText): Promise<RawReply> {
    return new Promise((resolve, reject) => {
      const cancelTimeout = clock.after(timeoutMs, () => {
        reject(new Error(`no answer in ${timeoutMs} ms`));
        destroy();
      });
      send([command], ([reply]) => {
        cancelTimeout();
        if (reply === undefined || reply instanceof Error) reject(reply);
        else resolve(reply);
      });
    });
  }

  function destroy(): void {
    end('the connection was closed');
  }

  function take(reply: RawReply): void {
    const [first] = unanswered;
    if (reason !== undefined) return;
    if (first === undefined) {
      end('the server said something without being asked');
      return;
    }
    first.replies.push(reply);
    if (first.replies.length < first.count) return;
    // Nearly always there is only one, and then this costs almost nothing.
    if (unanswered.length === 1) unanswered.pop();
    else unanswered.shift();
    observe(first);
    first.done(first.replies);
  }

  function end(why: string): void {
    if (reason !== undefined) return;
    reason = why;
    socket.destroy();
    tellEnd(why);
    // The caller that ends it may be in the middle of something.
    for (const sent of unanswered) {
      observe(sent);
      setImmediate(fail, sent);
    }
    unanswered.length = 0;
  }

  /** Calls without an answer count as well, until they were given up: else a server would seem to be fast
   * because it does not answer. */
  function observe({ sentMs }: Sent): void {
    callDuration?.observe((clock.monotonicMs() - sentMs) / 1000);
  }

  function fail({ count, replies, done }: Sent): void {
    while (replies.length < count) replies.push(new Error(reason));
    done(replies);
  }
}
