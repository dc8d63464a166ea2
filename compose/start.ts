// `npm start`: starts a control plane on the sample rules and a worker that it configures, with counters in the
// worker's memory, and prints what to try on them. Settings in the environment override the sample's.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { listenForStopSignals } from '../shared/stop-signals.ts';

const help = `npm start: Ratelane on this machine, to try it. Options are not accepted.

Starts a control plane on the rules of compose/rules, and a worker that it feeds and that counts in its own memory.
Once both serve, it prints requests to try. Ctrl-C stops both and discards all data.

Variables of the environment change where they listen:
  PORT                        the worker's HTTP port, for /json            (8080)
  GRPC_PORT                   the worker's gRPC port                       (8081)
  DEBUG_PORT                  the worker's debug port                      (6070)
  CONFIG_GRPC_XDS_SERVER_URL  where the control plane serves the worker    (127.0.0.1:18000)
  RATELANE_ADMIN_ADDRESS      the admin API and the console                (127.0.0.1:18001)

All settings of the worker work as well: npm run -s worker -- --help
Each program by itself: npm run -s worker, npm run -s control-plane -- serve --help
With Redis and Envoy: worker/docs/operating.md
`;
const [option] = process.argv.slice(2);
if (option !== undefined) {
  const isHelp = ['-h', '--help'].includes(option);
  if (isHelp) process.stdout.write(help);
  else
    process.stderr.write(
      `npm start accepts no options, and got ${JSON.stringify(option)}\n\n${help}`,
    );
  process.exit(isHelp ? 0 : 2);
}

const pathOf = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const rulesFolder = pathOf('rules');
const stateFolder = mkdtempSync(join(tmpdir(), 'ratelane-start-'));
const xdsAddress = process.env['CONFIG_GRPC_XDS_SERVER_URL'] ?? '127.0.0.1:18000';
const adminAddress = process.env['RATELANE_ADMIN_ADDRESS'] ?? '127.0.0.1:18001';
const readyTimeoutMs = 60_000;
const pollMs = 100;
/** More than two seconds of silence resembles a program that hangs. */
const progressMs = 2_000;

const environment: Record<string, string | undefined> = {
  BACKEND_TYPE: 'memory',
  CONFIG_TYPE: 'GRPC_XDS_SOTW',
  CONFIG_GRPC_XDS_SERVER_URL: xdsAddress,
  DISABLE_STATS: 'true',
  DEBUG_HOST: '127.0.0.1',
  ...process.env,
};
const port = environment['PORT'] ?? '8080';
const debugPort = environment['DEBUG_PORT'] ?? '6070';

const programs: ChildProcess[] = [];
let isStopping = false;

function start(file: string, ...args: string[]): void {
  const program = spawn(process.execPath, [pathOf(file), ...args], {
    env: environment,
    // In a process group of its own: otherwise Ctrl-C in the terminal would reach the programs before `stop` does.
    detached: true,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  program.once('exit', (code) => {
    // The sample needs both programs: when one ends, the other is stopped.
    if (!isStopping) void stop(code === 0 ? 1 : (code ?? 1));
  });
  programs.push(program);
}

async function stop(exitCode: number): Promise<void> {
  if (isStopping) return;
  isStopping = true;
  // The worker first: it would log the loss of its control plane as an error.
  for (const program of programs.toReversed()) {
    if (program.exitCode !== null || program.signalCode !== null) continue;
    program.kill('SIGTERM');
    await once(program, 'exit');
  }
  rmSync(stateFolder, { recursive: true, force: true });
  process.exit(exitCode);
}

async function isHealthy(address: string): Promise<boolean> {
  try {
    const answer = await fetch(`http://${address}/healthcheck`, {
      signal: AbortSignal.timeout(1_000),
    });
    return answer.ok;
  } catch {
    return false;
  }
}

/** False when the program is not healthy in time; it has logged the reason itself then. */
async function waitUntilHealthy(name: string, address: string): Promise<boolean> {
  const startedMs = performance.now();
  for (let reportedMs = startedMs; !isStopping; ) {
    const nowMs = performance.now();
    if (nowMs > startedMs + readyTimeoutMs) return false;
    if (await isHealthy(address)) return true;
    if (!isStopping && nowMs > reportedMs + progressMs) {
      reportedMs = nowMs;
      const seconds = Math.round((nowMs - startedMs) / 1000);
      process.stderr.write(`ratelane: starting ${name}: ${seconds} s\n`);
    }
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  return false;
}

const body = '{"domain":"shop","descriptors":[{"entries":[{"key":"customer","value":"ada"}]}]}';
const json = `http://localhost:${port}/json`;
const invitation = `
Ratelane runs: a control plane on compose/rules/*.yaml, and a worker that it feeds over xDS and that
counts in its own memory. The console is at

   http://${adminAddress}/console/

Customer ada may make three requests a minute. Try, in another terminal and
within one minute:

1. One request. Expect 200, with "limitRemaining":2.
   curl -i -d '${body}' ${json}

2. Three more, in one line. Expect 200, 200, and 429 for the one that is over the limit.
   curl -s -o /dev/null -w '%{http_code}\\n' -d '${body}' '${json}?[1-3]'

3. What happened. Expect total_hits 4, over_limit 1, and more if you have asked for other customers.
   curl -s http://localhost:${debugPort}/stats | grep shop.customer

4. Raise the limit while it runs, and ask again. Expect 200 with "requestsPerUnit":10.
   perl -pi -e 's/requests_per_unit: 3$/requests_per_unit: 10/' compose/rules/shop.yaml; sleep 1
   curl -i -d '${body}' ${json}

5. Is that in force everywhere? Expect yes, and exit code 0.
   npm run -s control-plane -- status --admin-url http://${adminAddress}

6. Something to see in the console: two thousand requests, most of them over the limit.
   curl -s -o /dev/null -d '${body}' '${json}?[1-2000]'

7. Restore the file.
   perl -pi -e 's/requests_per_unit: 10$/requests_per_unit: 3/' compose/rules/shop.yaml

Ctrl-C stops both.
`;

/** A second signal ends the programs without waiting for work in progress. SIGTERM again would only repeat the stop. */
function hurry(): void {
  for (const program of programs) program.kill('SIGINT');
}

listenForStopSignals(() => void stop(0), hurry);
// The terminal's SIGQUIT too, which would end only this process.
process.on('SIGQUIT', () => void stop(1));
start(
  '../control-plane/main.ts',
  'serve',
  ...['--config-dir', rulesFolder],
  ...['--state-dir', stateFolder],
  ...['--xds-address', xdsAddress],
  ...['--admin-address', adminAddress],
);
await waitUntilHealthy('the control plane', adminAddress);
if (!isStopping) start('../worker/main.ts');
if (await waitUntilHealthy('the worker', `127.0.0.1:${port}`)) process.stdout.write(invitation);
