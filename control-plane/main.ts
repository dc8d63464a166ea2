// `npm run -s control-plane -- <command>`: the control plane's command line.
import { endOnStopSignals, endWithNpx } from '../shared/stop-signals.ts';

// A signal ends other commands as any program.
if (process.argv[2] === 'serve') endOnStopSignals();
endWithNpx(process.env['npm_lifecycle_event']);

const { systemClock } = await import('../shared/clock.ts');
const { endWhenOutputIsClosed } = await import('../shared/closed-output.ts');
const { runCommand } = await import('./command/run-command.ts');

endWhenOutputIsClosed();

// npm runs scripts in the package's folder; paths are relative to the caller's directory.
const { npm_lifecycle_event: script, INIT_CWD: callerDirectory } = process.env;
if (script === 'control-plane' && callerDirectory !== undefined) process.chdir(callerDirectory);

process.exitCode = await runCommand(process.argv.slice(2), {
  write: (text) => process.stdout.write(text),
  writeError: (text) => process.stderr.write(text),
  isTerminal: process.stdout.isTTY === true,
  environment: process.env,
  clock: systemClock,
});
