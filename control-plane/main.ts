// `npm run -s control-plane -- <command>`: the control plane's command line.
import { systemClock } from '../shared/clock.ts';
import { endWhenOutputIsClosed } from '../shared/closed-output.ts';
import { runCommand } from './command/run-command.ts';

endWhenOutputIsClosed();

// npm runs scripts in the package's folder; paths are meant from where the person is.
const { npm_lifecycle_event: script, INIT_CWD: callerDirectory } = process.env;
if (script === 'control-plane' && callerDirectory !== undefined) process.chdir(callerDirectory);

process.exitCode = await runCommand(process.argv.slice(2), {
  write: (text) => process.stdout.write(text),
  writeError: (text) => process.stderr.write(text),
  isTerminal: process.stdout.isTTY === true,
  environment: process.env,
  clock: systemClock,
});
