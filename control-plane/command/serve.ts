// `serve`: follows a store of rules and serves them to workers until a signal ends it.

import { commandLine } from '../../shared/command-line.ts';
import { toCountText } from '../../shared/count-text.ts';
import { exitCodes as lifecycleCodes, runUntilStopped } from '../../shared/lifecycle.ts';
import { createLineOutput } from '../../shared/line-output.ts';
import { createLog } from '../../shared/log.ts';
import type { Environment } from '../../shared/settings/setting.ts';
import type { ControlPlane } from '../server.ts';
import { addFlags, describeVariables, overlayFlags } from '../settings/flags.ts';
import { controlPlaneTable } from '../settings/table.ts';
import { parseControlPlaneSettings } from '../settings.ts';
import type { AddCommand, CommandIo } from './command-frame.ts';

export const addServe: AddCommand = (program, { io }) => {
  const command = program
    .command('serve')
    .summary('serve rules to workers, from a directory or a Git repository')
    .description(
      'Follows a directory or a Git repository, serves its rules to workers (xDS) and an admin API to people. Rules with errors are never served: workers keep what they have.',
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

/** `environment` has the flags as well. */
async function runServe(environment: Environment, { environment: ofProcess, clock }: CommandIo) {
  const result = parseControlPlaneSettings(environment);
  const { write } = createLineOutput(process.stderr);
  const { level, format } = result.ok
    ? result.settings.log
    : { level: 'warning' as const, format: 'text' as const };
  const shape = {
    format: format === 'text' && process.stderr.isTTY ? ('terminal' as const) : format,
    write,
  };
  const log = createLog({ level, ...shape });
  for (const warning of result.warnings) log.warning(warning);
  if (!result.ok) {
    for (const problem of result.problems) log.error(problem);
    const settings = toCountText(result.problems.length, 'setting is', 'settings are');
    log.error(
      `Not started: ${settings} wrong; ${commandLine('control-plane')} serve --help lists all of them`,
    );
    process.exit(lifecycleCodes.failed);
  }
  const auditLog = createLog({ level: 'info', ...shape });
  const { settings } = result;
  // No other command should wait until the servers are loaded.
  const { createControlPlane, stopGraceMs } = await import('../server.ts');
  let controlPlane: ControlPlane | undefined;
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
    // Two servers stop one after the other, then the store.
    stopTimeoutMs: 3 * stopGraceMs,
  });
}
