// The real worker as a child process of a test: on free ports, with the given rules and settings; the fixture waits for
// it, collects its output, and ends it.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endWithUs } from './end-with-us.ts';
import { freePort } from './free-port.ts';
import type { Owner } from './owner.ts';
import { programCommand, programEnvironment } from './programs.ts';
import { waitUntil } from './wait-until.ts';

const host = '127.0.0.1';
const outputLimit = 4_000_000;
const readyMs = 150_000;
/** Longer than the worker's own limit, so that it is seen to end by itself. */
const stopGraceMs = 25_000;
/** Time limit of one readiness check. */
const checkMs = 5_000;
const pageMs = 30_000;

export interface WorkerPorts {
  readonly http: number;
  readonly grpc: number;
  readonly debug: number;
}

export interface WorkerProcessOptions {
  /** Settings; they override those of the fixture (addresses, runtime folder, no push metrics). */
  readonly env?: Readonly<Record<string, string>>;
  /** Rule files by name, in the worker's runtime folder. */
  readonly rules?: Readonly<Record<string, string>>;
  /** Instead of free ones. */
  readonly ports?: WorkerPorts;
  /** The command that starts a worker, if it is not the one of programs.ts. */
  readonly program?: readonly string[];
  /** Arguments of the command line. */
  readonly arguments?: readonly string[];
}

export type WorkerProcess = Awaited<ReturnType<typeof spawnWorkerProcess>>;

/** Starts it and waits until it answers; rejects with its output when it does not. */
export async function startWorkerProcess(t: Owner, options: WorkerProcessOptions = {}) {
  const worker = await spawnWorkerProcess(t, options);
  try {
    if (!(await waitUntil(worker.isReady, readyMs))) {
      throw new Error(`the worker was not ready after ${readyMs} ms: ${worker.output()}`);
    }
    return worker;
  } catch (error) {
    await worker.stop();
    throw error;
  }
}

/** Starts it without waiting, for a start that fails or that waits for something. */
export async function spawnWorkerProcess(t: Owner, options: WorkerProcessOptions = {}) {
  const ports = options.ports ?? {
    http: await freePort(),
    grpc: await freePort(),
    debug: await freePort(),
  };
  const folder = await mkdtemp(join(tmpdir(), 'ratelane-worker-'));
  const rulesFolder = join(folder, 'config');
  await mkdir(rulesFolder);
  for (const [name, text] of Object.entries(options.rules ?? {}))
    await writeFile(join(rulesFolder, name), text);
  const env = { ...defaultEnv(ports, folder), ...options.env };
  const [command = '', ...first] = options.program ?? programCommand('worker');
  const child = spawn(command, [...first, ...(options.arguments ?? [])], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  endWithUs(child);
  let output = '';
  let ended: number | string | undefined;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output = (output + chunk).slice(-outputLimit);
    });
  }
  const hasEnded = new Promise<void>((resolve) => {
    child.once('error', (error) => {
      ended = error.message;
      resolve();
    });
    child.once('close', (code, signal) => {
      ended ??= code ?? String(signal);
      resolve();
    });
  });

  const waitForEnd = async (timeoutMs: number): Promise<number | string | undefined> => {
    const timer = AbortSignal.timeout(timeoutMs);
    await Promise.race([
      hasEnded,
      new Promise((resolve) => timer.addEventListener('abort', resolve, { once: true })),
    ]);
    return ended;
  };

  const stop = async () => {
    await endProcess(child, waitForEnd);
    await rm(folder, { recursive: true, force: true });
  };
  t.teardown(stop);
  return {
    ports,
    pid: child.pid ?? 0,
    /** The folder that `rules` were written to. */
    rulesFolder,
    /** Standard output and error so far, in the order of arrival. */
    output: () => output,
    /** The exit code, or the signal's name; undefined while it runs. */
    ended: () => ended,
    /** The value of `ended`, once there is one; undefined when it still runs after `timeoutMs`. */
    waitForEnd,
    signal: (signal: NodeJS.Signals) => {
      child.kill(signal);
    },
    /** A page of the debug port, also while the worker starts. */
    async page(path: string) {
      const signal = AbortSignal.timeout(pageMs);
      return (await fetch(`http://${host}:${ports.debug}${path}`, { signal })).text();
    },
    /** True when health, gRPC and debug ports answer; throws when the process has ended. */
    async isReady() {
      if (ended !== undefined) {
        throw new Error(`the worker ended with ${ended} before it was ready: ${output}`);
      }
      return isAnswering(ports, env);
    },
    /** SIGTERM, then SIGKILL, and the folder is removed. Idempotent. */
    stop,
  };
}

function defaultEnv(ports: WorkerPorts, folder: string): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: process.env['HOME'] ?? '',
    ...programEnvironment,
    HOST: host,
    PORT: String(ports.http),
    GRPC_HOST: host,
    GRPC_PORT: String(ports.grpc),
    DEBUG_HOST: host,
    DEBUG_PORT: String(ports.debug),
    RUNTIME_ROOT: folder,
    RUNTIME_WATCH_ROOT: 'false',
    DISABLE_STATS: 'true',
  };
}

async function isAnswering(
  ports: WorkerPorts,
  env: Readonly<Record<string, string>>,
): Promise<boolean> {
  try {
    const answer = await fetch(`http://${host}:${ports.http}/healthcheck`, {
      signal: AbortSignal.timeout(checkMs),
    });
    await answer.body?.cancel();
  } catch {
    return false;
  }
  const others = env['GRPC_UDS'] === undefined ? [ports.debug, ports.grpc] : [ports.debug];
  const open = await Promise.all(others.map(acceptsConnection));
  return open.every(Boolean);
}

function acceptsConnection(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, host);
    const end = (accepted: boolean) => () => {
      socket.destroy();
      resolve(accepted);
    };
    socket.once('connect', end(true));
    socket.once('error', end(false));
    socket.setTimeout(checkMs, end(false));
  });
}

async function endProcess(
  child: ChildProcess,
  waitForEnd: (timeoutMs: number) => Promise<unknown>,
): Promise<void> {
  child.kill('SIGTERM');
  if ((await waitForEnd(stopGraceMs)) === undefined) {
    child.kill('SIGKILL');
    await waitForEnd(stopGraceMs);
  }
}
