// The Redis that the services under test count in, how many commands it got, and the way to it.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { startRedisServer } from '../support/redis-server.ts';

export interface Store {
  /** `host:port`, directly. */
  readonly address: string;
  readonly port: number;
  clear(): Promise<void>;
  /** Commands so far, that of this question not counted. */
  countCommands(): Promise<number>;
  stop(): Promise<void>;
}

export async function startStore(): Promise<Store> {
  const redis = await startRedisServer();
  let questions = 0;
  return {
    address: redis.url,
    port: redis.port ?? 0,
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

export interface DelayedWay {
  readonly address: string;
  stop(): Promise<void>;
}

/** A way to a port that takes `roundTripMs`, in a process of its own. */
export async function startDelayedWay(port: number, roundTripMs: number): Promise<DelayedWay> {
  const file = fileURLToPath(new URL('delay-proxy.ts', import.meta.url));
  const child = fork(file, [String(port), String(roundTripMs)]);
  const signal = AbortSignal.timeout(10_000);
  const [ownPort] = (await once(child, 'message', { signal })) as [number];
  return {
    address: `127.0.0.1:${ownPort}`,
    async stop() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}
