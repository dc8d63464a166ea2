// `npm run -s worker`: a worker with the settings of the environment.
import { leaveSignals } from './early-signals.ts';
import './fast-strings.ts';
import { exitCodes } from '../shared/lifecycle.ts';

const [argument] = process.argv.slice(2);
if (argument === undefined) {
  // Most of the time until the worker is there goes into reading its modules.
  const { runWorker } = await import('./run-worker.ts');
  await runWorker(process.env, leaveSignals);
} else if (/^--?h(elp)?$/.test(argument)) {
  const { commandLine } = await import('../shared/command-line.ts');
  const { describeWorkerSettings } = await import('./settings.ts');
  process.stdout.write(`Usage: ${commandLine('worker')} [--help]

Decides rate limits for Envoy over gRPC and HTTP until it gets SIGTERM. Everything is set by
environment variables:

${describeWorkerSettings()}`);
} else {
  process.stderr.write(
    `unknown argument ${argument}: settings are environment variables, --help lists them\n`,
  );
  process.exitCode = exitCodes.failed;
}
