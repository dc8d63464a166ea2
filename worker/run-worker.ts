// Runs a worker as a process: from the environment's settings to the exit code. worker.ts composes the worker.

import { systemClock } from '../shared/clock.ts';
import { commandLine } from '../shared/command-line.ts';
import { refuseSettings, runUntilStopped } from '../shared/lifecycle.ts';
import { createLineOutput } from '../shared/line-output.ts';
import { createProgramLog, logBeforeSettings } from '../shared/program-log.ts';
import type { Environment } from '../shared/settings/setting.ts';
import { storeKinds } from './counters/store-kinds.ts';
import { findTlsFileProblems, findTokenFileProblems, parseWorkerSettings } from './settings.ts';
import { startWorkerTracer } from './tracing.ts';
import { warmUp } from './warm-up.ts';
import { createWorker, stopGraceMs } from './worker.ts';

/** Time limit for everything else after decisions in flight have ended. */
export const closeGraceMs = 5_000;

/**
 * Runs until a signal ends it. Exit codes: 0 stopped, 1 not started (the reason is on standard
 * error).
 */
export async function runWorker(environment: Environment): Promise<never> {
  const result = parseWorkerSettings(environment);
  const log = createProgramLog(result.ok ? result.settings.log : logBeforeSettings);
  for (const warning of result.warnings) log.warning(warning);
  const problems = result.ok
    ? [
        ...(await findTlsFileProblems(result.tlsFiles)),
        ...(await findTokenFileProblems(result.tokenFiles)),
      ]
    : result.problems;
  if (!result.ok || problems.length > 0) {
    refuseSettings(log, problems, `${commandLine('worker')} --help`);
  }

  const clock = systemClock;
  const { settings } = result;
  // The normal state of a single worker, so it is not a warning.
  if (!storeKinds[settings.counting.backend].isShared) {
    log.notice(
      'Counters are in memory: each worker counts by itself, N workers allow N times a limit',
    );
  }
  const worker = await createWorker({
    settings,
    environment,
    dump: result.dump,
    log,
    clock,
    // With several processes each has its own tracer.
    tracer:
      settings.processes.count === 1
        ? await startWorkerTracer(settings.tracing, { log, clock })
        : undefined,
    standardOutput: createLineOutput(process.stdout),
    warmUp: (signal) => warmUp({ settings, clock }, signal),
  });
  return runUntilStopped({
    log,
    start: async (signal) => void (await worker.start(signal)),
    stop: () => worker.stop(),
    onStopping: (reason) => worker.announceStop(reason),
    stopTimeoutMs: stopGraceMs + closeGraceMs,
  });
}
