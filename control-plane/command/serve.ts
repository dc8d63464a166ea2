// `serve`: follows a store of rules and serves them to workers until a signal ends it.

import { setFlagsFromString } from 'node:v8';
import { outliveOutput } from '../../shared/closed-output.ts';
import { commandLine } from '../../shared/command-line.ts';
import { refuseSettings, runUntilStopped } from '../../shared/lifecycle.ts';
import { createProgramLog, logBeforeSettings } from '../../shared/program-log.ts';
import type { Environment } from '../../shared/settings/setting.ts';
import type { ControlPlane } from '../server/server.ts';
import { addFlags, describeVariables, overlayFlags } from '../server/settings/flags.ts';
import { controlPlaneTable } from '../server/settings/table.ts';
import { parseControlPlaneSettings } from '../server/settings.ts';
import type { AddCommand, CommandIo } from './command-frame.ts';

export const addServe: AddCommand = (command, { io }) => {
  command
    .description(
      'Follows a directory or a Git repository, serves its rules to workers (xDS), and an admin API. Rules with errors are never served: workers retain their previous rules.',
    )
    .usage('--config-dir <dir> | --git <url> [options]')
    .addHelpText(
      'after',
      `
${describeVariables(controlPlaneTable)}
Exit codes:
  0  stopped by a signal
  1  not started, or ended by a defect; the reason is on standard error`,
    )
    .action(async (options: Readonly<Record<string, unknown>>) => {
      await runServe(overlayFlags(controlPlaneTable, io.environment, options), io);
    });
  addFlags(command, controlPlaneTable);
};

/** With less memory, a change of 30,000 limits, which takes 460 MB if available, would end the process. */
const littleMb = 400;

/** Makes V8 collect garbage often, which doubles the processor time of a change. The default flags would let the heap
 * grow to two and a half times its size first. */
function saveMemory(): void {
  setFlagsFromString('--memory-saver-mode');
  setFlagsFromString('--heap-growing-percent=0');
}

/** `environment` includes the flags. */
async function runServe(environment: Environment, { environment: ofProcess, clock }: CommandIo) {
  const result = parseControlPlaneSettings(environment);
  const log = createProgramLog(result.ok ? result.settings.log : logBeforeSettings);
  for (const warning of result.warnings) log.warning(warning);
  if (!result.ok) {
    refuseSettings(log, result.problems, `${commandLine('control-plane')} serve --help`);
  }
  const { settings } = result;
  const auditLog = createProgramLog({ ...settings.log, level: 'info' });
  // Other commands should not wait for the servers to load.
  const { memoryMb } = await import('../server/work-thread.ts');
  if (memoryMb() < littleMb) saveMemory();
  const { createControlPlane, stopTimeoutMs } = await import('../server/server.ts');
  let controlPlane: ControlPlane | undefined;
  outliveOutput();
  await runUntilStopped({
    log,
    async start(signal) {
      controlPlane = createControlPlane({
        settings,
        log,
        auditLog,
        clock,
        environment: ofProcess,
      });
      await controlPlane.start(signal);
    },
    stop: async () => controlPlane?.stop(),
    stopTimeoutMs,
  });
}
