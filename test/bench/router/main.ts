// Measures CPU time per request: the router compared with Fastify and Hono, with validation, in one run. Each round
// starts new servers, which then alternate in changing order: other work of the machine within a tenth of a second
// affects all of them, and the result is their ratio in each turn. The load generator is a separate process.
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { median, medianRatio } from '../statistics.ts';
import type { Load, LoadReport } from './load.ts';
import { type Row, rows } from './rows.ts';
import type { ServerReport } from './serve.ts';

const usage = `Usage: npm run bench:router -- [flags]

CPU time a request of the router, Fastify (Ajv) and Hono (zod, @hono/node-server) for the same work.

  --rounds N      default 5
  --requests N    measured in each round, of each row and server; default 12000
  --row TEXT      only rows whose name has this in it
`;

const servers = ['router', 'fastify', 'hono'] as const;
type ServerName = (typeof servers)[number];

const deadlineMs = 150_000;
/** Enough to spread garbage collections over all turns. */
const requestsOfTurn = 2_000;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    requests: { type: 'string', default: '12000' },
    row: { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
});
const rounds = Number(values.rounds);
const requests = Number(values.requests);
const chosen = rows.filter(({ name }) => name.includes(values.row));
if (values.help || !(rounds >= 1) || !(requests >= 100) || chosen.length === 0) {
  process.stdout.write(usage);
  process.exit(values.help ? 0 : 2);
}

interface Running {
  readonly name: ServerName;
  readonly child: ChildProcess;
  readonly port: number;
}

/** By row and server: microseconds per request in each turn. */
const results = new Map<string, Map<number, number>>();
const turns = Math.ceil(requests / requestsOfTurn);
const load = start('load.ts');
for (let round = 0; round < rounds; round += 1) await runRound(round);
load.disconnect();
print();

async function runRound(round: number): Promise<void> {
  const running: Running[] = [];
  for (const name of servers) {
    const child = start(`servers/${name}.ts`);
    running.push({ name, child, port: (await receive<{ port: number }>(child)).port });
  }
  // All rows first, so that a server's code is compiled for all of them before any is measured.
  for (const row of chosen) for (const { port } of running) await put({ port, row, requests });
  for (const row of chosen) {
    for (let turn = round * turns; turn < (round + 1) * turns; turn += 1) {
      for (let index = 0; index < running.length; index += 1)
        await measure(running[(turn + index) % running.length] as Running, row, turn);
    }
  }
  for (const { child } of running) {
    child.disconnect();
    await once(child, 'exit', { signal: AbortSignal.timeout(deadlineMs) });
  }
}

async function measure({ name, child, port }: Running, row: Row, turn: number): Promise<void> {
  const size = Math.ceil(requests / turns);
  const before = await ask(child);
  await put({ port, row, requests: size });
  const cpuUs = ((await ask(child)) - before) / size;
  const key = `${row.name} ${name}`;
  const ofRow = results.get(key) ?? new Map<number, number>();
  results.set(key, ofRow.set(turn, cpuUs));
}

function start(file: string): ChildProcess {
  return fork(new URL(file, import.meta.url), { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
}

async function receive<Message extends LoadReport | ServerReport>(
  child: ChildProcess,
): Promise<Message> {
  const over = new AbortController();
  const signal = AbortSignal.any([over.signal, AbortSignal.timeout(deadlineMs)]);
  const ended = once(child, 'exit', { signal }).then(([code]) => {
    throw new Error(`${child.spawnargs.at(-1)} ended early: ${code}`);
  });
  ended.catch(() => {});
  try {
    const [message] = await Promise.race([once(child, 'message', { signal }), ended]);
    return message as Message;
  } finally {
    over.abort();
  }
}

async function put(order: Load): Promise<void> {
  load.send(order);
  const report = await receive<LoadReport>(load);
  if ('failure' in report) throw new Error(`${order.row.name}: ${report.failure}`);
}

async function ask(server: ChildProcess): Promise<number> {
  server.send('cpu');
  return (await receive<{ cpuUs: number }>(server)).cpuUs;
}

function print(): void {
  const ofRow = (row: Row, name: ServerName) => results.get(`${row.name} ${name}`) ?? new Map();
  const lines = [
    ['us of CPU a request', ...servers, 'of fastify', 'of hono'],
    ...chosen.map((row) => [
      row.name,
      ...servers.map((name) => median([...ofRow(row, name).values()]).toFixed(1)),
      medianRatio(ofRow(row, 'router'), ofRow(row, 'fastify')).toFixed(2),
      medianRatio(ofRow(row, 'router'), ofRow(row, 'hono')).toFixed(2),
    ]),
  ];
  process.stdout.write(
    `Node ${process.versions.node}, ${['fastify', 'hono', '@hono/node-server', 'zod'].map(toVersion).join(', ')}; ` +
      `medians of ${rounds} rounds of ${requests} requests\n\n`,
  );
  for (const line of lines) {
    const cells = line.map((cell, at) => (at === 0 ? cell.padEnd(26) : cell.padStart(11)));
    process.stdout.write(`${cells.join('')}\n`);
  }
}

function toVersion(name: string): string {
  const file = new URL(`../../../node_modules/${name}/package.json`, import.meta.url);
  return `${name} ${(JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version}`;
}
