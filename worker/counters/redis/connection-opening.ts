// Opens a connection to one server: TLS, authentication, database, PING. Afterwards connection.ts takes over its
// socket; redis-lane.ts opens the next one.
//
// The client library only opens it. Counting bypasses the library, whose command object for each increment costs more
// than the rest of a decision.
import { Redis } from 'ioredis';
import type { Clock } from '../../../shared/clock.ts';
import { errorText } from '../../../shared/errors.ts';
import { redact } from '../../../shared/redact.ts';
import type { Metrics } from '../../metrics.ts';
import { type StoreAddress, showStoreAddress } from './address.ts';
import { type Connection, createConnection } from './connection.ts';
import type { ConnectionTls, TlsOptions } from './connection-tls.ts';
import type { Credentials, ReadCredentials } from './credentials.ts';

export interface OpeningDeps {
  readonly address: StoreAddress;
  /** The number of the database to select. */
  readonly database: number;
  readonly readCredentials: ReadCredentials;
  readonly tls: ConnectionTls | undefined;
  /** Time limit until the connection is usable. */
  readonly timeoutMs: number;
  /** Undefined for servers that count no hits. */
  readonly callDuration: Metrics['storeCallDuration'] | undefined;
  readonly clock: Clock;
}

const keepAliveMs = 10_000;

/**
 * Resolves when the server has answered PING with PONG. Rejects with an Error whose message describes the failure,
 * without secrets.
 */
export function openConnection(deps: OpeningDeps, signal: AbortSignal): Promise<Connection> {
  return new Promise((resolve, reject) => {
    let redis: Redis | undefined;
    let lastError = '';
    let over = false;
    const cancelTimeout = deps.clock.after(deps.timeoutMs, () =>
      fail(new Error(`could not connect within ${deps.timeoutMs} ms`)),
    );
    const onAbort = () => fail(new Error('the attempt to connect was cancelled'));
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

/**
 * Configures the client library neither to reconnect, nor to queue, resend or send a greeting by itself, so that
 * nothing is counted twice and simple proxies work (behaviour: never-sent-twice).
 */
function createClient({ address, timeoutMs }: OpeningDeps, tls: TlsOptions | undefined): Redis {
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

/** Sends AUTH without the client library, which only prints some refusals. */
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
      throw new Error(`${name}: ${redact(reply.message, secrets)}`);
    }
    if (name === 'PING' && reply !== 'PONG') {
      throw new Error(`PING was answered with "${String(reply).slice(0, 80)}" instead of PONG`);
    }
  }
}

function destroyClient(redis: Redis): void {
  if (redis.status === 'end') return;
  redis.disconnect();
  // Does not wait for a server that may have stopped reading.
  redis.stream?.destroy();
}

/** For a host name with several addresses Node's error has no text, but contains the errors of each. */
function toConnectionText(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map(errorText).join(', ');
  }
  return errorText(error);
}
