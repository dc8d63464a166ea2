// The real control plane as a child process of a test, with its commands: on free ports, with its own state folder; the
// fixture waits for it, collects its output, and ends it.
import { execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { runInProcess } from './command-run.ts';
import { endWithUs } from './end-with-us.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { programCommand, programEnvironment } from './programs.ts';
import { standStill } from './standstill.ts';

const ownProgram = programCommand('control-plane');
const readyMs = 150_000;
const stopMs = 30_000;
const commandMs = 100_000;
const answerMs = 30_000;
const outputLimit = 1_000_000;

export interface ControlPlaneOptions {
  /** Flags of `serve`, without addresses and the state folder. */
  readonly flags: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The command that starts a control plane, if it is not the one of programs.ts. */
  readonly program?: readonly string[];
  /** Instead of one in a temporary folder. */
  readonly stateDirectory?: string;
  /** Instead of free ones. */
  readonly addresses?: readonly string[];
  /** Instead of a free one, for tests that need to know it in advance. */
  readonly adminPort?: number;
}

export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export type ControlPlaneProcess = Awaited<ReturnType<typeof createControlPlaneProcess>>;

export interface AdminReply {
  readonly status: number;
  readonly headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of many shapes
  readonly body: any;
}

/** Not started yet; ended after the test. */
export async function createControlPlaneProcess(
  t: Pick<ExecutionContext, 'teardown'>,
  options: ControlPlaneOptions,
) {
  const { flags, env = {}, addresses, adminPort, stateDirectory, program = ownProgram } = options;
  const [executable = '', ...first] = program;
  const stateFolder = mkdtempSync(join(tmpdir(), 'control-plane-'));
  const xdsAddress = `127.0.0.1:${await freePort()}`;
  const adminAddress = `127.0.0.1:${adminPort ?? (await freePort())}`;
  const adminUrl = `http://${adminAddress}`;
  const environment = {
    PATH: process.env['PATH'],
    HOME: stateFolder,
    ...programEnvironment,
    ...env,
  };
  const free = ['--xds-address', xdsAddress, '--admin-address', adminAddress];
  const state = ['--state-dir', stateDirectory ?? join(stateFolder, 'state')];
  const args = ['serve', ...flags, ...(addresses ?? free), ...state];
  let output = '';
  let current: ReturnType<typeof spawnOnce> | undefined;

  function spawnOnce() {
    const child = spawn(executable, [...first, ...args], {
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    endWithUs(child);
    let code: number | string | undefined;
    const ended = Promise.withResolvers<number | string>();
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output = (output + chunk).slice(-outputLimit);
      });
    }
    child.once('close', (exitCode, signal) => {
      code = exitCode ?? String(signal);
      ended.resolve(code);
    });
    return {
      get code() {
        return code;
      },
      pid: child.pid,
      resume: () => void child.kill('SIGCONT'),
      signal: (name: NodeJS.Signals) => void child.kill(name),
      ended: ended.promise,
      async end(signal: NodeJS.Signals) {
        child.kill(signal);
        const timer = setTimeout(() => child.kill('SIGKILL'), stopMs);
        const result = await ended.promise;
        clearTimeout(timer);
        return result;
      },
    };
  }

  /** Runs in the process of the test if it is our own program: a process for each command would take most of the
   * time. */
  async function run(command: readonly string[]): Promise<CommandResult> {
    if (program === ownProgram) {
      const { code, out, err } = await runInProcess(command, { environment });
      return { exitCode: code, stdout: out, stderr: err };
    }
    return new Promise((resolve) => {
      const options = { env: environment, timeout: commandMs };
      const all = [...first, ...command];
      const child = execFile(executable, all, options, (_error, stdout, stderr) => {
        resolve({ exitCode: child.exitCode ?? -1, stdout, stderr });
      });
    });
  }

  t.teardown(async () => {
    await current?.end('SIGTERM');
    rmSync(stateFolder, { recursive: true, force: true });
  });

  return {
    adminUrl,
    xdsAddress,
    /** Standard output and error so far, over all its starts. */
    output: () => output,
    /** Resolves when workers are served; fails with the output when it ends before. */
    async start() {
      const life = spawnOnce();
      current = life;
      await eventually(
        'the control plane serves',
        async () => {
          if (life.code !== undefined) throw new Error(`it ended with ${life.code}: ${output}`);
          const answer = await fetch(`${adminUrl}/healthcheck`).catch(() => undefined);
          await answer?.body?.cancel();
          return answer?.status === 200;
        },
        readyMs,
      );
    },
    /** Starts it without waiting, for a start that fails or that waits for something. */
    begin() {
      current = spawnOnce();
    },
    /** The exit code, or the signal's name, of a control plane that ends by itself. */
    async ended() {
      const timer = setTimeout(() => void current?.end('SIGKILL'), readyMs);
      const code = await current?.ended;
      clearTimeout(timer);
      return code ?? 'not running';
    },
    /** The exit code, or the signal's name. */
    async end(signal: NodeJS.Signals) {
      const life = current;
      current = undefined;
      return life === undefined ? 'not running' : life.end(signal);
    },
    /** SIGSTOP: it keeps its connections and sends nothing, until `resume`. */
    async standStill() {
      if (current?.pid !== undefined) await standStill(current.pid);
    },
    resume: () => current?.resume(),
    signal: (name: NodeJS.Signals) => current?.signal(name),
    /** Runs a command with --admin-url. */
    run: (...command: readonly string[]) => run([...command, '--admin-url', adminUrl]),
    /** Runs a command unchanged. */
    runElsewhere: (...command: readonly string[]) => run(command),
    /** The status and the JSON of an answer of the admin API. */
    fetch: (path: string, init?: RequestInit) => fetchAdmin(adminUrl, path, init),
  };
}

export async function fetchAdmin(
  adminUrl: string,
  path: string,
  init: RequestInit = {},
): Promise<AdminReply> {
  const answer = await fetch(`${adminUrl}${path}`, {
    ...init,
    signal: AbortSignal.timeout(answerMs),
  });
  const text = await answer.text();
  const { status, headers } = answer;
  const isJson = headers.get('content-type')?.includes('json') === true;
  return { status, headers, body: isJson ? JSON.parse(text) : text };
}
