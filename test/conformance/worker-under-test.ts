// The real worker with the settings and files of a group of cases, and everything around it that is observed: Redis or
// memcached, the receiver of push metrics, and its configuration folder.
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { freePort } from '../support/free-port.ts';
import { type MemcachedServer, startMemcachedServer } from '../support/memcached-server.ts';
import { unowned } from '../support/owner.ts';
import { type RedisServer, startRedisServer } from '../support/redis-server.ts';
import { startStatsdReceiver } from '../support/statsd-receiver.ts';
import { waitUntil } from '../support/wait-until.ts';
import { spawnWorkerProcess } from '../support/worker-process.ts';
import { type Case, type FileTexts, fileText, usesMemcached } from './case-file.ts';

const host = '127.0.0.1';
const tlsFolder = fileURLToPath(new URL('.', import.meta.url));
const readyTimeoutMs = 60_000;

/** The servers that all groups of a run share, started on first use. */
type SharedServers = ReturnType<typeof createSharedServers>;

export function createSharedServers() {
  const running = new Map<string, Promise<RedisServer>>();
  let memcached: Promise<MemcachedServer> | undefined;
  const all = (): Promise<RedisServer[]> => Promise.all(running.values());
  return {
    redis(name: string) {
      const server = running.get(name) ?? startRedisServer(unowned);
      running.set(name, server);
      return server;
    },
    memcached() {
      memcached ??= startMemcachedServer(unowned);
      return memcached;
    },
    async clear() {
      await Promise.all((await all()).map((server) => server.command('FLUSHALL')));
      await (await memcached)?.flush();
    },
    async stop() {
      await Promise.all((await all()).map((server) => server.stop()));
      await (await memcached)?.stop();
    },
  };
}

export type WorkerUnderTest = Awaited<ReturnType<typeof startWorkerUnderTest>>;

export async function startWorkerUnderTest(group: readonly Case[], servers: SharedServers) {
  const first = group[0];
  if (first === undefined) throw new Error('a group has at least one case');
  const folder = await mkdtemp(join(tmpdir(), 'ratelane-conformance-'));
  const statsd = await startStatsdReceiver(unowned);
  const socket = join(folder, 'redis.sock');
  const redisArgs = ['--unixsocket', socket, ...(first.redis_args ?? [])];
  const own =
    first.own_redis === true ? await startRedisServer(unowned, { args: redisArgs }) : undefined;
  const redis = async (name: string): Promise<RedisServer> =>
    name === 'redis' && own !== undefined ? own : servers.redis(name);

  const root = join(folder, 'root-1');
  const link = join(folder, 'current');
  const rules = join(root, 'ratelimit', first.env?.['RUNTIME_APPDIRECTORY'] ?? 'config');
  mkdirSync(rules, { recursive: true });
  symlinkSync(root, link);
  const initial = new Map<string, string>();
  for (const [name, content] of group.flatMap((one) => Object.entries(one.config))) {
    if (name.startsWith('@')) {
      writeFileSync(join(folder, name.slice(1)), fileText(content));
    } else if (initial.has(name)) {
      throw new Error(`two cases of one group have a file ${name}`);
    } else {
      initial.set(name, fileText(content));
      writeFileSync(join(rules, name), fileText(content));
    }
  }

  const ports = { http: await freePort(), grpc: await freePort(), debug: await freePort() };
  const metricsPort = await freePort();
  const watchesRoot = first.env?.['RUNTIME_WATCH_ROOT'] === 'true';
  const settings: Record<string, string | null> = {
    RUNTIME_ROOT: watchesRoot ? link : root,
    RUNTIME_SUBDIRECTORY: 'ratelimit',
    RUNTIME_WATCH_ROOT: 'false',
    LOG_LEVEL: 'warn',
    STATSD_HOST: host,
    STATSD_PORT: String(statsd.port),
    STATS_FLUSH_INTERVAL: '100ms',
    DISABLE_STATS: 'false',
    ...(!usesMemcached(first) && { REDIS_SOCKET_TYPE: 'tcp', REDIS_URL: '{redis}' }),
    ...first.env,
  };
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(settings))
    if (value !== null) env[name] = await fillAddresses(value);
  const worker = await spawnWorkerProcess(unowned, { env, ports });

  async function fillAddresses(text: string): Promise<string> {
    let filled = text.replaceAll('{tmp}', folder).replaceAll('{kit}/', tlsFolder);
    for (const [name, port] of Object.entries({ ...ports, metrics: metricsPort })) {
      filled = filled.replaceAll(`{port:${name}}`, String(port));
    }
    for (const name of ['redis', 'redis2']) {
      if (filled.includes(`{${name}}`)) {
        filled = filled.replaceAll(`{${name}}`, (await redis(name)).url);
      }
    }
    if (filled.includes('{memcached}'))
      filled = filled.replaceAll('{memcached}', (await servers.memcached()).url);
    return filled;
  }

  const writeFile = (name: string, text: string, inPlace: boolean): void => {
    const target = join(rules, name);
    const staged = inPlace ? target : join(folder, 'staged');
    writeFileSync(staged, text);
    if (!inPlace) renameSync(staged, target);
  };

  return {
    process: worker,
    statsd,
    /** The port of the pull endpoint, when a case has enabled it. */
    metricsPort,
    /** The target that gRPC clients connect to. */
    grpcTarget: env['GRPC_UDS'] === undefined ? `${host}:${ports.grpc}` : `unix:${env['GRPC_UDS']}`,
    /** `redis` is the case's own, if it has one. */
    redis,
    memcached: servers.memcached,
    /** Waits until the worker answers; rejects with its output when it does not. */
    async waitUntilReady() {
      if (!(await waitUntil(worker.isReady, readyTimeoutMs))) {
        throw new Error(`not ready after ${readyTimeoutMs} ms: ${worker.output()}`);
      }
    },
    writeFiles(files: FileTexts, inPlace: boolean) {
      for (const [name, content] of Object.entries(files))
        writeFile(name, fileText(content), inPlace);
    },
    removeFiles(names: readonly string[]) {
      for (const name of names) rmSync(join(rules, name));
    },
    /** Changes only the mode. */
    touchModes(names: readonly string[]) {
      for (const name of names) {
        const path = join(rules, name);
        chmodSync(path, statSync(path).mode ^ 0o011);
      }
    },
    /** Writes the files into a new root and points the symlink of the root to it. */
    swapRoot(files: FileTexts) {
      const next = join(folder, `root-${readdirSync(folder).length + 1}`);
      const nextRules = join(next, 'ratelimit', 'config');
      mkdirSync(nextRules, { recursive: true });
      for (const [name, content] of Object.entries(files))
        writeFileSync(join(nextRules, name), fileText(content));
      symlinkSync(next, `${link}.new`);
      renameSync(`${link}.new`, link);
    },
    /** Restores the configuration of the start; true when that changed something. */
    restoreFiles() {
      let changed = false;
      for (const name of readdirSync(rules)) {
        if (!initial.has(name)) {
          rmSync(join(rules, name), { recursive: true });
          changed = true;
        }
      }
      for (const [name, text] of initial) {
        const path = join(rules, name);
        if (!existsSync(path) || readFileSync(path, 'utf8') !== text) {
          writeFile(name, text, false);
          changed = true;
        }
      }
      return changed;
    },
    async stop() {
      await worker.stop();
      await Promise.all([own?.stop(), statsd.close()]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
