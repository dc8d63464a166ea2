// The Redis and the memcached in which services under test count, the number of their commands, and the delayed
// connection to them.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { hasEnded } from '../support/end-with-us.ts';
import { startMemcachedServer } from '../support/memcached-server.ts';
import { unowned } from '../support/owner.ts';
import { startRedisServer } from '../support/redis-server.ts';

export interface Store {
  /** `host:port`, directly. */
  readonly address: string;
  readonly port: number;
  /** Settings of a service that counts here, at this address. */
  toEnvironment(address: string): Readonly<Record<string, string>>;
  clear(): Promise<void>;
  /** Commands so far, without the one for this query. */
  countCommands(): Promise<number>;
  stop(): Promise<void>;
}

export async function startRedis(): Promise<Store> {
  const redis = await startRedisServer(unowned);
  let questions = 0;
  return {
    address: redis.url,
    port: redis.port ?? 0,
    toEnvironment: (address) => ({ REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: address }),
    async clear() {
      await redis.command('FLUSHALL');
    },
    async countCommands() {
      const info = String(await redis.command('INFO', 'stats'));
      const total = Number(/total_commands_processed:(\d+)/.exec(info)?.[1]);
      return total - questions++;
    },
    stop: () => redis.stop(),
  };
}

/** Each key that is read or changed is a command. */
const memcachedCounters = ['cmd_get', 'cmd_set', 'cmd_touch', 'incr_hits', 'incr_misses'];

export async function startMemcached(): Promise<Store> {
  const memcached = await startMemcachedServer(unowned);
  return {
    address: memcached.url,
    port: memcached.port,
    toEnvironment: (address) => ({ BACKEND_TYPE: 'memcache', MEMCACHE_HOST_PORT: address }),
    clear: () => memcached.flush(),
    async countCommands() {
      const stats = await memcached.stats();
      return memcachedCounters.reduce((sum, name) => sum + (stats.get(name) ?? 0), 0);
    },
    stop: () => memcached.stop(),
  };
}

/** Starts a proxy to a port with a round trip of `roundTripMs`, in a separate process. */
export async function startDelayedWay(port: number, roundTripMs: number) {
  const file = fileURLToPath(new URL('delay-proxy.ts', import.meta.url));
  const child = fork(file, [String(port), String(roundTripMs)]);
  const signal = AbortSignal.timeout(10_000);
  const [ownPort] = (await once(child, 'message', { signal })) as [number];
  return {
    address: `127.0.0.1:${ownPort}`,
    async stop() {
      if (hasEnded(child)) return;
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}
