// `npm run bench`: CPU of the worker process for each decision, beside a @grpc/grpc-js server that
// gives a constant answer, in turns within one run. Quote the ratios: machines are noisy.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { loadSync } from '@grpc/proto-loader';
import { freePort } from '../support/free-port.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { startLoad } from './load.ts';

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '4' },
    streams: { type: 'string', default: '64' },
  },
});
const rounds = Number(flags.rounds);
const measuredMs = Number(flags.seconds) * 1000;
const warmUpMs = 1000;
const distinctKeys = 10_000;

interface Scenario {
  readonly name: string;
  readonly script: string;
  readonly env: Readonly<Record<string, string>>;
  readonly messages: readonly Buffer[];
}

interface Measurement {
  /** Microseconds of user and system time of the server process. */
  readonly cpuPerDecisionUs: number;
  readonly decisionsPerSecond: number;
}

const rules = `domain: bench
descriptors:
  - key: free
    rate_limit: {unlimited: true}
  - key: counted
    rate_limit: {unit: hour, requests_per_unit: 1000000000}
`;

const folder = mkdtempSync(join(tmpdir(), 'ratelane-bench-'));
writeFileSync(join(folder, 'bench.yaml'), rules);

const definition = loadSync('envoy/service/ratelimit/v3/rls.proto', {
  includeDirs: [new URL('../../proto', import.meta.url).pathname],
});
const method = definition['envoy.service.ratelimit.v3.RateLimitService'];
if (!method || 'format' in method) throw new Error('rls.proto does not define the service');

function frame(key: string, value: string): Buffer {
  const serialize = (method as Record<string, { requestSerialize(value: object): Buffer }>)[
    'ShouldRateLimit'
  ]?.requestSerialize;
  if (!serialize) throw new Error('rls.proto does not define ShouldRateLimit');
  const message = serialize({ domain: 'bench', descriptors: [{ entries: [{ key, value }] }] });
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}
const framesOf = (key: string) =>
  Array.from({ length: distinctKeys }, (_, index) => frame(key, `v${index}`));

/** User and system time of a process, in milliseconds, from the kernel's own account. */
function readCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  const msPerTick = 10;
  return (Number(fields[11]) + Number(fields[12])) * msPerTick;
}

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

async function waitForPort(port: number, child: ChildProcess): Promise<void> {
  const end = performance.now() + 10_000;
  while (performance.now() < end) {
    if (child.exitCode !== null) throw new Error(`the server ended with code ${child.exitCode}`);
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      const answer = (opened: boolean) => () => {
        socket.destroy();
        resolve(opened);
      };
      socket.once('connect', answer(true));
      socket.once('error', answer(false));
    });
    if (isOpen) return;
    await wait(20);
  }
  throw new Error(`no answer on port ${port} within 10 s`);
}

async function measure(scenario: Scenario): Promise<Measurement> {
  const [grpcPort, httpPort, debugPort] = [await freePort(), await freePort(), await freePort()];
  const child = spawn(process.execPath, [scenario.script], {
    env: {
      ...process.env,
      GRPC_HOST: '127.0.0.1',
      GRPC_PORT: String(grpcPort),
      HOST: '127.0.0.1',
      PORT: String(httpPort),
      DEBUG_HOST: '127.0.0.1',
      DEBUG_PORT: String(debugPort),
      RUNTIME_ROOT: folder,
      RUNTIME_APPDIRECTORY: '',
      RUNTIME_WATCH_ROOT: 'false',
      DISABLE_STATS: 'true',
      LOG_LEVEL: 'error',
      ...scenario.env,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  try {
    await waitForPort(grpcPort, child);
    const load = await startLoad({
      port: grpcPort,
      connections: Number(flags.connections),
      streams: Number(flags.streams),
      messages: scenario.messages,
    });
    await wait(warmUpMs);
    const pid = child.pid as number;
    const before = { cpuMs: readCpuMs(pid), answered: load.answered, at: performance.now() };
    await wait(measuredMs);
    const cpuMs = readCpuMs(pid) - before.cpuMs;
    const answered = load.answered - before.answered;
    const seconds = (performance.now() - before.at) / 1000;
    await load.stop();
    if (load.failed > 0) {
      throw new Error(`${scenario.name}: ${load.failed} calls failed, first: ${load.firstFailure}`);
    }
    return {
      cpuPerDecisionUs: (cpuMs * 1000) / answered,
      decisionsPerSecond: answered / seconds,
    };
  } finally {
    child.kill('SIGTERM');
    if (child.exitCode === null) await once(child, 'exit');
  }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? Number.NaN)
    : ((sorted[middle - 1] ?? Number.NaN) + (sorted[middle] ?? Number.NaN)) / 2;
}

const redis = await startRedisServer();
try {
  const worker = new URL('../../worker/main.ts', import.meta.url).pathname;
  const counted = framesOf('counted');
  const scenarios: readonly Scenario[] = [
    {
      name: 'grpc-js, constant answer',
      script: new URL('constant-server.ts', import.meta.url).pathname,
      env: {},
      messages: counted,
    },
    {
      name: 'worker, unlimited',
      script: worker,
      env: { BACKEND_TYPE: 'memory' },
      messages: framesOf('free'),
    },
    {
      name: 'worker, in process, 10,000 keys',
      script: worker,
      env: { BACKEND_TYPE: 'memory' },
      messages: counted,
    },
    {
      name: 'worker, Redis, 10,000 keys',
      script: worker,
      env: { KVSTORE_SOCKET_TYPE: 'tcp', KVSTORE_URL: `127.0.0.1:${redis.port}` },
      messages: counted,
    },
  ];
  const results = new Map<string, Measurement[]>(scenarios.map(({ name }) => [name, []]));
  for (let round = 1; round <= rounds; round++) {
    for (const scenario of scenarios) {
      process.stderr.write(`round ${round} of ${rounds}: ${scenario.name}\n`);
      results.get(scenario.name)?.push(await measure(scenario));
    }
  }

  const yardstick = results.get(scenarios[0]?.name ?? '') ?? [];
  const row = (cells: readonly string[]) =>
    `${cells[0]?.padEnd(34)}${cells
      .slice(1)
      .map((cell) => cell.padStart(18))
      .join('')}\n`;
  process.stdout.write(row(['', 'CPU us/decision', 'decisions/s', 'CPU ratio']));
  for (const { name } of scenarios) {
    const measured = results.get(name) ?? [];
    const cpu = (values: readonly Measurement[]) => values.map((value) => value.cpuPerDecisionUs);
    const ratios = cpu(measured).map(
      (value, round) => value / (cpu(yardstick)[round] ?? Number.NaN),
    );
    process.stdout.write(
      row([
        name,
        median(cpu(measured)).toFixed(1),
        median(measured.map((value) => value.decisionsPerSecond)).toFixed(0),
        median(ratios).toFixed(2),
      ]),
    );
  }
} finally {
  await redis.stop();
  rmSync(folder, { recursive: true });
}
