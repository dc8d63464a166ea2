// `npm run -s worker`: runs a worker with the settings of the environment.
import './early-signals.ts';
import './fast-strings.ts';
import { exitCodes } from '../shared/exit-codes.ts';
import { endWithNpx } from '../shared/stop-signals.ts';

endWithNpx(process.env['npm_lifecycle_event']);

const [argument] = process.argv.slice(2);
if (argument === undefined) {
  // Imported late: most of the start time is loading modules.
  const { runWorker } = await import('./run-worker.ts');
  await runWorker(process.env);
} else if (/^--?h(elp)?$/.test(argument)) {
  await prepareCommand();
  const { commandLine } = await import('../shared/command-line.ts');
  const { describeWorkerSettings } = await import('./settings.ts');
  process.stdout.write(`Usage: ${commandLine('worker')} [--help | --version]

Decides rate limits for Envoy over gRPC and HTTP until it gets SIGTERM. Everything is set by
environment variables:

${describeWorkerSettings()}`);
} else if (/^--?version$/.test(argument)) {
  await prepareCommand();
  const { readVersion } = await import('../shared/version.ts');
  process.stdout.write(`${readVersion()}\n`);
} else {
  await prepareCommand();
  const { maskArguments } = await import('../shared/settings/shown-value.ts');
  process.stderr.write(
    `unknown argument ${maskArguments(argument, [argument])}: settings are environment variables, --help lists them\n`,
  );
  process.exitCode = exitCodes.wrongUsage;
}

/** Loads modules that only commands with output need, so that a serving worker does not load them. */
async function prepareCommand(): Promise<void> {
  const { endWhenOutputIsClosed } = await import('../shared/closed-output.ts');
  endWhenOutputIsClosed();
}
