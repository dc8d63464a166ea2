// `npm run -s worker`: a worker with the settings of the environment.
import './fast-strings.ts';
import { commandLine } from '../shared/command-line.ts';
import { exitCodes } from '../shared/lifecycle.ts';
import { runWorker } from './run-worker.ts';
import { describeWorkerSettings } from './settings.ts';

const usage = `Usage: ${commandLine('worker')} [--help]

Decides rate limits for Envoy over gRPC and HTTP until it gets SIGTERM. Everything is set by
environment variables:

`;

const [argument] = process.argv.slice(2);
if (argument === undefined) {
  await runWorker(process.env);
} else if (/^--?h(elp)?$/.test(argument)) {
  process.stdout.write(usage + describeWorkerSettings());
} else {
  process.stderr.write(
    `unknown argument ${argument}: settings are environment variables, --help lists them\n`,
  );
  process.exitCode = exitCodes.failed;
}
