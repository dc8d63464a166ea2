// The workers of a soak: which store they use, and what they do when it fails.
import { type MemcachedServer, startMemcachedServer } from '../../support/memcached-server.ts';
import type { Owner } from '../../support/owner.ts';
import { type RedisServer, startRedisServer } from '../../support/redis-server.ts';

export interface Configuration {
  readonly name: string;
  readonly store: 'redis' | 'memcached';
  readonly onFailure: 'error' | 'allow' | 'deny' | 'local';
}

export const configurations: readonly Configuration[] = [
  { name: 'Redis', store: 'redis', onFailure: 'error' },
  // A memory cache that does not answer counts as 0 unless configured otherwise.
  { name: 'memcached', store: 'memcached', onFailure: 'allow' },
  { name: 'Redis, else allow', store: 'redis', onFailure: 'allow' },
  { name: 'Redis, else deny', store: 'redis', onFailure: 'deny' },
  { name: 'Redis, else local', store: 'redis', onFailure: 'local' },
];

export type SoakStore = Awaited<ReturnType<typeof startSoakStore>>;

/** Timeout of requests to Redis. */
export const storeTimeoutMs = 2_000;
/** The window of the rules: so long that none ends during a soak, except in one night of the year. */
const windowSeconds = 365 * 86_400;

export async function startSoakStore(t: Owner, { store }: Configuration) {
  const server = store === 'redis' ? await startRedisServer(t) : await startMemcachedServer(t);
  const read = async (key: string) =>
    isRedis(server) ? server.command('GET', key) : server.get(key);
  return {
    port: server.port,
    /** The hits counted for a value of key `k` in domain `d`. */
    async countOf(value: string) {
      const start = Math.floor(Date.now() / 1000 / windowSeconds) * windowSeconds;
      return Number((await read(`d_k_${value}_${start}`)) ?? 0);
    },
  };
}

function isRedis(server: RedisServer | MemcachedServer): server is RedisServer {
  return 'command' in server;
}

export function toEnvironment(
  { store, onFailure, name }: Configuration,
  port: number,
): Record<string, string> {
  const url = `127.0.0.1:${port}`;
  if (store === 'memcached') return { BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: url };
  return {
    KVSTORE_URL: url,
    KVSTORE_TIMEOUT: `${storeTimeoutMs}ms`,
    KVSTORE_POOL_SIZE: '4',
    ...(name === 'Redis' ? {} : { KVSTORE_FAILURE_MODE: onFailure }),
  };
}

/** The decisions that the worker reports to have made without the store, from its statistics. */
export function countErrors(statistics: string): number {
  const lines = statistics.matchAll(
    /^ratelimit\.(?:failure_mode\.\w+|memcache\.(?:multiget|increment|add)\.__code=error): (\d+)/gm,
  );
  return [...lines].reduce((sum, [, count]) => sum + Number(count), 0);
}
