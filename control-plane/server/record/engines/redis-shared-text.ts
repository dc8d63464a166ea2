// A text that control planes share in Redis: a string of a random id, a line feed and the text, replaced under WATCH.
// Each call opens its own connection, so that a failover, a new address of the name and renewed credentials apply from
// the next call on.
import { randomUUID } from 'node:crypto';
import { isIP } from 'node:net';
import type { Redis } from 'ioredis';
import { AppError, errorText } from '../../../../shared/errors.ts';
import { type HostPort, showHostPort } from '../../../../shared/host-port.ts';
import { redact } from '../../../../shared/redact.ts';
import { asideSuffix } from '../../store/set-aside.ts';
import { maxSharedTextBytes, type SwapResult } from '../../store/shared-text.ts';
import { type EngineAccess, readEnginePassword, readEngineTls } from './engine-access.ts';
import { EngineText, engineTimeoutMs, type Found } from './engine-text.ts';

export interface RedisAddress {
  readonly kind: 'redis';
  readonly address: HostPort;
  readonly isTls: boolean;
  readonly database: number;
  /** Undefined: Redis's user `default`. */
  readonly username: string | undefined;
}

const idLength = randomUUID().length;
const headPattern = /^[\da-f-]{36}\n/;
/** The server responds but rejects writes: a replica, a user without the permission, no memory or disk left. */
const denials = /^(?:READONLY|NOPERM|OOM|MISCONF|NOREPLICAS)\b/;

export class RedisSharedText extends EngineText<Redis> {
  readonly #address: RedisAddress;
  readonly #key: string;
  readonly #access: EngineAccess;

  /** `name` distinguishes the records of several fleets in one Redis. */
  constructor(
    address: RedisAddress,
    name: string,
    access: EngineAccess,
    timeoutMs = engineTimeoutMs,
  ) {
    const key = `ratelane/record/${name}`;
    super(`${key} in Redis at ${showHostPort(address.address)}`, key + asideSuffix, timeoutMs);
    this.#address = address;
    this.#key = key;
    this.#access = access;
  }

  /** A value that no control plane can have written is read as an empty text. */
  protected async find(redis: Redis): Promise<Found | undefined> {
    const maxBytes = idLength + 1 + maxSharedTextBytes;
    const bytes = await redis.getrangeBuffer(this.#key, 0, maxBytes);
    if (bytes.length === 0) return undefined;
    const head = bytes.toString('latin1', 0, idLength + 1);
    if (!headPattern.test(head)) return { version: 'foreign', bytes: Buffer.alloc(0) };
    return { version: head.slice(0, idLength), bytes: bytes.subarray(idLength + 1) };
  }

  protected async replace(
    redis: Redis,
    before: string | undefined,
    text: string,
  ): Promise<SwapResult> {
    const version = randomUUID();
    try {
      await redis.call('WATCH', this.#key);
      if ((await this.find(redis))?.version !== before) return { kind: 'stale' };
      await redis.call('MULTI');
      await redis.call('SET', this.#key, `${version}\n${text}`);
      const done = await redis.call('EXEC');
      return done === null ? { kind: 'stale' } : { kind: 'written', version };
    } catch (error) {
      const reason = errorText(error);
      if (denials.test(reason)) return { kind: 'denied', reason };
      throw error;
    }
  }

  protected async move(redis: Redis, version: string): Promise<void> {
    await redis.call('WATCH', this.#key);
    if ((await this.find(redis))?.version !== version) return;
    await redis.call('MULTI');
    await redis.call('RENAME', this.#key, this.#key + asideSuffix);
    await redis.call('EXEC');
  }

  protected async open<Result>(
    signal: AbortSignal,
    use: (redis: Redis) => Promise<Result>,
  ): Promise<Result> {
    const password = await readEnginePassword(this.#access);
    const tls = this.#address.isTls ? await readEngineTls(this.#access) : undefined;
    signal.throwIfAborted();
    // Loaded only where a record is in Redis.
    const { Redis } = await import('ioredis');
    const redis = new Redis({
      ...this.#address.address,
      ...(tls && {
        tls: isIP(this.#address.address.host)
          ? tls
          : { ...tls, servername: this.#address.address.host },
      }),
      lazyConnect: true,
      retryStrategy: null,
      autoResendUnfulfilledCommands: false,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      enableReadyCheck: false,
      disableClientInfo: true,
      connectTimeout: this.timeoutMs,
    });
    let connectionError: unknown;
    redis.on('error', (error) => {
      connectionError = error;
    });
    const end = () => redis.disconnect();
    signal.addEventListener('abort', end);
    try {
      await redis.connect().catch((error: unknown) => {
        throw connectionError ?? error;
      });
      const { username, database } = this.#address;
      // Authenticates here because the client library only prints some refusals.
      if (password !== undefined) {
        const user = username === undefined ? [] : [username];
        await redis.call('AUTH', ...user, password);
      }
      if (database !== 0) await redis.call('SELECT', database);
      return await use(redis);
    } catch (error) {
      // Some servers quote the arguments of a command in their errors.
      const secrets = password === undefined ? [] : [password];
      throw new AppError('store', redact(errorText(error), secrets), { cause: error });
    } finally {
      signal.removeEventListener('abort', end);
      end();
    }
  }
}
