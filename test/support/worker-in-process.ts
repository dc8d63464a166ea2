// The real worker inside of the test's own process, composed from an environment as in the program: quicker than a
// separate process, and on whatever clock a test uses.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import { type Clock, systemClock } from '../../shared/clock.ts';
import { parseWorkerSettings } from '../../worker/settings.ts';
import { createWorker } from '../../worker/worker.ts';
import { freePort } from './free-port.ts';
import type { ManualClock } from './manual-clock.ts';
import { createRecordedLog } from './recorded-log.ts';
import { createTemporaryFolder } from './temporary-folder.ts';

const host = '127.0.0.1';
const startTimeoutMs = 60_000;
const answerTimeoutMs = 60_000;
const turnMs = 50;

export interface WorkerInProcessOptions {
  /** Settings; they override those of the fixture (free ports, runtime folder, no statistics). */
  readonly env: Readonly<Record<string, string>>;
  /** One rules file, or several by name. */
  readonly rules?: string | ReadonlyMap<string, string>;
  readonly clock?: Clock | ManualClock;
}

export interface Answer {
  readonly status: number;
  /** The body: JSON of the response, or the reason why there is none. */
  readonly text: string;
}

export type WorkerInProcess = Awaited<ReturnType<typeof launchWorker>>;

/** Started and serving. It is stopped when the test is over. */
export async function startWorker(t: ExecutionContext, options: WorkerInProcessOptions) {
  const worker = await launchWorker(t, options);
  await worker.started;
  return worker;
}

/** Like `startWorker`, for a start that fails or that waits for something. */
export async function launchWorker(
  t: ExecutionContext,
  { env, rules, clock = systemClock }: WorkerInProcessOptions,
) {
  const folder = createTemporaryFolder(t);
  await mkdir(join(folder, 'config'));
  const files = typeof rules === 'string' ? new Map([['rules.yaml', rules]]) : (rules ?? []);
  for (const [name, text] of files) await writeFile(join(folder, 'config', name), text);
  const debugPort = await freePort();
  const environment = { ...defaultEnv(folder, debugPort), ...env };
  const result = parseWorkerSettings(environment);
  if (!result.ok) throw new Error(result.problems.join('\n'));
  const log = createRecordedLog();
  for (const warning of result.warnings) log.warning(warning);
  const worker = await createWorker({
    settings: result.settings,
    environment,
    dump: result.dump,
    log,
    clock,
    tracer: undefined,
    standardOutput: { ready: true, write: () => {}, droppedCount: 0 },
  });
  const stopping = new AbortController();
  const deadline = AbortSignal.timeout(startTimeoutMs);
  const started = worker.start(AbortSignal.any([stopping.signal, deadline]));
  t.teardown(async () => {
    stopping.abort();
    await started.catch(() => {});
    // A worker lets its callers leave first; the manual clock must still advance for that.
    const turning = setInterval(() => 'advance' in clock && clock.advance(turnMs), turnMs);
    await worker.stop().finally(() => clearInterval(turning));
  });
  // Awaiting `started` reports the failure of the start; an unawaited failure must not end the test process.
  started.catch(() => {});

  return {
    /** Everything logged so far, about the settings first. */
    log,
    /** Resolves when every port is open; rejects when the start fails, or takes longer than 60 s. */
    started,
    /** One descriptor for each `key` or `key=value`, over `/json`, in domain `d`. */
    async decide(...entries: string[]) {
      const descriptors = entries.map((entry) => {
        const [key, value = 'v'] = entry.split('=');
        return { entries: [{ key, value }] };
      });
      const { http } = await started;
      const answer = await fetch(`http://${http.text}/json`, {
        method: 'POST',
        body: JSON.stringify({ domain: 'd', descriptors }),
        signal: AbortSignal.timeout(answerTimeoutMs),
      });
      return { status: answer.status, text: await answer.text() };
    },
    /** A page of the debug port, also while the worker starts. */
    async page(path: string) {
      const url = `http://${host}:${debugPort}${path}`;
      return (await fetch(url, { signal: AbortSignal.timeout(answerTimeoutMs) })).text();
    },
  };
}

function defaultEnv(folder: string, debugPort: number): Record<string, string> {
  return {
    HOST: host,
    PORT: '0',
    GRPC_HOST: host,
    GRPC_PORT: '0',
    DEBUG_HOST: host,
    DEBUG_PORT: String(debugPort),
    RUNTIME_ROOT: folder,
    RUNTIME_WATCH_ROOT: 'false',
    DISABLE_STATS: 'true',
  };
}
