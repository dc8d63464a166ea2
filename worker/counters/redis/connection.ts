// One connection to one server, from its opening (authentication, database, PING) to its end. It
// never reconnects and never sends anything twice; redis-lane.ts opens the next one.
import { Command, Redis } from 'ioredis';
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import type { StoreAddress } from './address.ts';
import type { ConnectionTls, TlsOptions } from './connection-tls.ts';
import type { Credentials, ReadCredentials } from './credentials.ts';

/** The name first, then the arguments. */
export type RedisCommand = readonly [string, ...(string | number)[]];
/** Numbers come as decimal text, exact at any size. */
export type RawReply = string | null | Error;

export interface Connection {
  /**
   * Writes all commands at once. `done` is called once, never from inside `send`, with one reply per
   * command; those that the connection's end left unanswered are errors.
   */
  send(commands: readonly RedisCommand[], done: (replies: RawReply[]) => void): void;
  /** One command and its reply, an array where the server sends one. Rejects with what the server
   * refuses, and when no reply comes in time, which ends the connection. */
  ask(command: RedisCommand): Promise<unknown>;
  /** Ends it now, whatever is in flight. */
  destroy(): void;
  /** Resolves, with the reason, when the connection has ended, whoever ended it. */
  readonly ended: Promise<string>;
}

export interface ConnectionDeps {
  readonly address: StoreAddress;
  /** The number of the database to select. */
  readonly database: number;
  readonly readCredentials: ReadCredentials;
  readonly tls: ConnectionTls | undefined;
  /** For the whole opening. */
  readonly timeoutMs: number;
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
      resolve({
        ended: new Promise((end) => {
          client.once('end', () => end(lastError || 'the connection was closed'));
        }),
        send: (commands, done) => sendCommands(client, commands, done),
        ask: (command) => ask(client, command, deps),
        destroy: () => destroyClient(client),
      });
    }

    function release(): void {
      cancelTimeout();
      signal.removeEventListener('abort', onAbort);
    }
  });
}

/** The client library must neither reconnect, nor queue, nor resend, nor greet by itself, so that
 * nothing is counted twice and simple proxies can stand in between (decisions 19). */
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
    stringNumbers: true,
    connectTimeout: timeoutMs,
    noDelay: true,
    keepAlive: keepAliveMs,
  });
}

/** Authenticates here rather than in the client library, which only prints some refusals. */
async function greet(
  redis: Redis,
  database: number,
  credentials: Credentials | undefined,
): Promise<void> {
  const commands: RedisCommand[] = [];
  if (credentials) {
    const { username, password } = credentials;
    commands.push(username === undefined ? ['auth', password] : ['auth', username, password]);
  }
  if (database !== 0) commands.push(['select', database]);
  commands.push(['ping']);
  const replies = await new Promise<RawReply[]>((resolve) =>
    sendCommands(redis, commands, resolve),
  );
  for (const [index, reply] of replies.entries()) {
    const name = commands[index]?.[0].toUpperCase();
    if (reply instanceof Error) {
      throw new Error(`${name}: ${withoutSecret(reply.message, credentials?.password ?? '')}`);
    }
    if (name === 'PING' && reply !== 'PONG') {
      throw new Error(`PING was answered with "${String(reply).slice(0, 80)}" instead of PONG`);
    }
  }
}

/** Some servers quote the arguments of a command that they do not know. */
function withoutSecret(text: string, password: string): string {
  return password === '' ? text : text.replaceAll(password, '*****');
}

function sendCommands(
  redis: Redis,
  commands: readonly RedisCommand[],
  done: (replies: RawReply[]) => void,
): void {
  const replies: RawReply[] = new Array(commands.length);
  let unanswered = commands.length;
  const collect = (index: number, reply: RawReply) => {
    replies[index] = reply;
    if (--unanswered === 0) done(replies);
  };
  redis.stream.cork();
  for (const [index, [name, ...parameters]] of commands.entries()) {
    const onReply = (error: Error | null | undefined, reply: unknown) =>
      collect(index, error ?? (reply as RawReply));
    redis.sendCommand(new Command(name, parameters, { replyEncoding: 'utf8' }, onReply));
  }
  redis.stream.uncork();
}

function ask(
  redis: Redis,
  command: RedisCommand,
  { clock, timeoutMs }: ConnectionDeps,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const cancelTimeout = clock.after(timeoutMs, () => {
      reject(new Error(`no answer in ${timeoutMs} ms`));
      destroyClient(redis);
    });
    sendCommands(redis, [command], ([reply]) => {
      cancelTimeout();
      if (reply instanceof Error) reject(reply);
      else resolve(reply);
    });
  });
}

function destroyClient(redis: Redis): void {
  if (redis.status === 'end') return;
  redis.disconnect();
  // Without waiting for a server that may have stopped reading.
  redis.stream?.destroy();
}

/** A host name with several addresses fails with one error that holds the others and says nothing. */
function toConnectionText(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(errorText).join(', ');
  }
  return errorText(error);
}
