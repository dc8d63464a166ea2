// Runs a program from its first line to its exit code: start, wait for a signal, stop in bounded time.
// Composition roots decide what is started, and in which order.

import type { Writable } from 'node:stream';
import { toCountText } from './count-text.ts';
import { AppError, errorText } from './errors.ts';
import { exitCodes } from './exit-codes.ts';
import type { Log } from './log.ts';
import { stackText } from './source-positions.ts';
import { listenForStopSignals, type StopSignal } from './stop-signals.ts';

export interface Program {
  readonly log: Log;
  /**
   * Resolves once the program serves. `signal` aborts when the stop begins before that; `start` may then
   * resolve or reject. Otherwise a rejection ends the process with exit code 1, and an AppError is printed
   * without a stack.
   */
  start(signal: AbortSignal): Promise<void>;
  /** Closes what is open. Called once, after `start` settled or failed; `reason` is undefined after a failure. */
  stop(reason: StopSignal | undefined): Promise<void>;
  /** Called at once with the signal, before any wait: where a program reports itself unhealthy. */
  onStopping?(reason: StopSignal): void;
  /** Time limit of the whole stop; then the process exits. */
  readonly stopTimeoutMs: number;
}

const signalWords: Readonly<Record<StopSignal, string>> = {
  SIGINT: 'interrupt',
  SIGTERM: 'terminated',
  SIGHUP: 'hangup',
};

/** Time limit for writing the last log lines. */
const outputTimeoutMs = 500;

/** Logs every problem of the settings and ends the process; `help` is the command that lists all settings. */
export function refuseSettings(log: Log, problems: readonly string[], help: string): never {
  for (const problem of problems) log.error(problem);
  const count = toCountText(problems.length, 'setting is', 'settings are');
  log.error(`Not started: ${count} wrong; ${help} lists all of them`);
  process.exit(exitCodes.failed);
}

/**
 * Runs the program and ends the process: SIGINT, SIGTERM and SIGHUP begin an orderly stop at any time and lead to
 * exit code 0, a second one exits at once (behaviour: bounded-stop). An error thrown outside every promise and
 * callback is a defect: it is logged with its stack and ends the process with exit code 1, since the state is
 * unknown after it.
 */
export async function runUntilStopped(program: Program): Promise<never> {
  const { log, stopTimeoutMs } = program;
  const stopping = new AbortController();
  const firstSignal = Promise.withResolvers<StopSignal>();

  process.on('uncaughtException', (error) => {
    log.error(`Unexpected error, the process ends: ${stackText(error)}`);
    void endProcess(exitCodes.failed);
  });
  // Node would write them to standard error, between the lines of the log.
  process.removeAllListeners('warning').on('warning', ({ name, message }) => {
    const isForAuthors = name === 'DeprecationWarning' || name === 'ExperimentalWarning';
    log[isForAuthors ? 'debug' : 'warning'](`${name}: ${message}`);
  });
  listenForStopSignals(
    (signal) => {
      log.info(`Received signal ${signalWords[signal]}, initiating shutdown`);
      stopping.abort(new AppError('cannot_start', 'the process is stopping'));
      program.onStopping?.(signal);
      firstSignal.resolve(signal);
    },
    (signal) => {
      log.warning(`Received a second signal (${signalWords[signal]}), exiting at once`);
      process.exit(exitCodes.ok);
    },
  );

  // A start that fails before any signal also ends the wait.
  const failed = Promise.withResolvers<undefined>();
  let failure: unknown;
  const started = program.start(stopping.signal).catch((error: unknown) => {
    if (stopping.signal.aborted) {
      log.debug(`The start was aborted: ${errorText(error)}`);
      return;
    }
    failure = error ?? new Error('the start failed without an error');
    log.error(error instanceof AppError ? error.message : stackText(error));
    failed.resolve(undefined);
  });
  const reason = await Promise.race([firstSignal.promise, failed.promise]);

  const stopped = started
    .then(() => program.stop(reason))
    .then(
      () => true,
      (error: unknown) => {
        log.error(`Stopping failed: ${stackText(error)}`);
        return true;
      },
    );
  if (!(await settlesWithin(stopped, stopTimeoutMs))) {
    log.warning(`Not everything was closed within ${stopTimeoutMs}ms, exiting anyway`);
  }
  return endProcess(failure === undefined ? exitCodes.ok : exitCodes.failed);
}

function settlesWithin(promise: Promise<boolean>, timeoutMs: number): Promise<boolean> {
  const timeout = Promise.withResolvers<false>();
  const timer = setTimeout(() => timeout.resolve(false), timeoutMs);
  return Promise.race([promise, timeout.promise]).finally(() => clearTimeout(timer));
}

async function endProcess(code: number): Promise<never> {
  // Set first: the code is right even if the last lines cannot be written.
  process.exitCode = code;
  await settlesWithin(
    Promise.all([drain(process.stderr), drain(process.stdout)]).then(() => true),
    outputTimeoutMs,
  );
  process.exit(code);
}

function drain(stream: Writable): Promise<void> {
  if (stream.writableLength === 0 || stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    stream
      .once('drain', resolve)
      .once('close', resolve)
      .once('error', () => resolve());
    stream.write('', () => resolve());
  });
}
