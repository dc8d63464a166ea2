// A service under test: the worker, the yardstick, or any other with the same protocol, started as a command in its own
// process group.
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { delimiter, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { hasEnded } from '../support/end-with-us.ts';
import { freePort } from '../support/free-port.ts';
import { waitUntil } from '../support/wait-until.ts';
import { readGroup } from './process-usage.ts';

export interface Service {
  readonly name: string;
  /** A shell command that stays in the foreground and in its process group, and exits on SIGTERM. */
  readonly command: string;
  readonly kind: 'ours' | 'yardstick' | 'other';
}

export interface RunningService {
  readonly grpcPort: number;
  readonly pids: readonly number[];
  /** Sends SIGTERM to the group, and SIGKILL to the processes that remain. */
  stop(): Promise<void>;
}

const root = fileURLToPath(new URL('../..', import.meta.url));
const host = '127.0.0.1';
const startTimeoutMs = 30_000;
const stopTimeoutMs = 10_000;
const settleMs = 300;
const outputLimit = 4_000;

/** The worker as started by `npm run worker`, but without the additional npm process. */
export const worker: Service = { name: 'ratelane', command: readWorkerCommand(), kind: 'ours' };

export const yardstick: Service = {
  name: 'grpc-js, constant answer',
  command: 'exec node test/bench/constant-server.ts',
  kind: 'yardstick',
};

function readWorkerCommand(): string {
  const text = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  const { scripts } = JSON.parse(text) as { scripts: { worker: string } };
  return scripts.worker;
}

export async function startService(
  service: Service,
  prefix: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<RunningService> {
  const [grpcPort, httpPort, debugPort] = [await freePort(), await freePort(), await freePort()];
  const statisticsPort = await freePort();
  const [file = 'sh', ...args] = [...prefix, 'sh', '-c', service.command];
  const child = spawn(file, args, {
    cwd: root,
    detached: true,
    env: {
      ...process.env,
      // The Node of this process, where npm would find it.
      PATH: [dirname(process.execPath), process.env['PATH'] ?? ''].join(delimiter),
      GRPC_HOST: host,
      GRPC_PORT: String(grpcPort),
      HOST: host,
      PORT: String(httpPort),
      DEBUG_HOST: host,
      DEBUG_PORT: String(debugPort),
      RUNTIME_WATCH_ROOT: 'false',
      // Exposed for scraping, as in most fleets. With no output at all, every decision would write a line, and the
      // reader of those lines shares a processor with the load.
      USE_STATSD: 'false',
      USE_PROMETHEUS: 'true',
      PROMETHEUS_ADDR: `${host}:${statisticsPort}`,
      LOG_LEVEL: 'error',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const group = child.pid ?? 0;
  const endWithUs = () => endGroup(group, 'SIGKILL');
  process.once('exit', endWithUs);
  const output = collectOutput(child);
  const stop = async (): Promise<void> => {
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      endGroup(group, signal);
      if (await waitUntil(() => readGroup(group).length === 0, stopTimeoutMs)) break;
    }
    process.removeListener('exit', endWithUs);
  };

  try {
    const ports = service.kind === 'yardstick' ? [grpcPort] : [grpcPort, httpPort];
    const isOpen = async (): Promise<boolean> => {
      if (hasEnded(child)) throw new Error(`it ended: ${child.exitCode ?? child.signalCode}`);
      return (await Promise.all(ports.map(accepts))).every(Boolean);
    };
    if (!(await waitUntil(isOpen, startTimeoutMs))) throw new Error('its ports stayed closed');
    return { grpcPort, pids: await readSettledGroup(group), stop };
  } catch (error) {
    await stop();
    throw new Error(`${service.name} did not start: ${(error as Error).message}\n${output()}`);
  }
}

function collectOutput(child: ChildProcess): () => string {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-outputLimit);
    });
  }
  // A command that cannot be started closes immediately, without an exit code.
  child.once('error', (error) => {
    output += error.message;
  });
  return () => output;
}

/** The processes of the group once they have not changed for a moment. */
async function readSettledGroup(group: number): Promise<readonly number[]> {
  for (let pids = readGroup(group); ; ) {
    await sleep(settleMs);
    const later = readGroup(group);
    if (later.join() === pids.join()) return later;
    pids = later;
  }
}

function endGroup(group: number, signal: NodeJS.Signals): void {
  // While the group has members, its number cannot be reused; 0 would be our own group.
  if (group > 0 && readGroup(group).length > 0) process.kill(-group, signal);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    const end = (isAccepted: boolean) => () => {
      socket.destroy();
      resolve(isAccepted);
    };
    socket.once('connect', end(true));
    socket.once('error', end(false));
    socket.setTimeout(1_000, end(false));
  });
}
