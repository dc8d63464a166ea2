// Every command in README.md works: all are run in order, in a copy of the tree, as a reader would paste them. For a
// program that serves, the test waits until it is ready, and lets it run until the next one begins.
import { execFile, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { hasEnded } from '../support/end-with-us.ts';
import { eventually } from '../support/eventually.ts';
import { findFencedBlocks } from '../support/fenced-blocks.ts';
import { freePort } from '../support/free-port.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const parts = ['control-plane', 'compose', 'proto', 'shared', 'worker', 'package.json'];
const commandTimeoutMs = 90_000;

/** How each program that serves is recognized as ready; no other program is left running. */
const servers: readonly { readonly command: string; readonly readyAt: 'worker' | 'admin' }[] = [
  { command: 'npm start', readyAt: 'worker' },
  { command: 'npm run -s worker', readyAt: 'worker' },
  { command: 'npm run -s control-plane -- serve', readyAt: 'admin' },
];

interface Sandbox {
  readonly folder: string;
  readonly environment: NodeJS.ProcessEnv;
  readonly healthOf: Readonly<Record<'worker' | 'admin', string>>;
  /** What is unavailable in a test, and its substitute; nothing else is changed. */
  readonly substitutions: readonly (readonly [string, string])[];
}

function readCommands(): string[] {
  const blocks = findFencedBlocks(readFileSync(join(root, 'README.md'), 'utf8'));
  return (
    blocks
      .filter(({ language }) => language === 'sh')
      .flatMap(({ text }) => text.replaceAll('\\\n', ' ').trim().split('\n'))
      // The running test is started by one of these.
      .filter((command) => !/^npm (?:test|run test:all)\b/.test(command))
  );
}

async function prepare(t: ExecutionContext): Promise<Sandbox> {
  const folder = createTemporaryFolder(t);
  for (const part of [...parts, 'package-lock.json'])
    await cp(join(root, part), join(folder, part), { recursive: true });
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const author = ['-c', 'user.name=a', '-c', 'user.email=a@example.com'];
  await run('git', ['init', '-q', '-b', 'main', folder]);
  await run('git', ['-C', folder, 'add', 'compose/rules']);
  await run('git', ['-C', folder, ...author, 'commit', '-q', '-m', 'rules']);
  const redis = await startRedisServer(t);
  const [http, grpc, debug, xds, admin] = await Promise.all([1, 2, 3, 4, 5].map(freePort));
  return {
    folder,
    environment: {
      PATH: process.env['PATH'],
      HOME: folder,
      HOST: '127.0.0.1',
      GRPC_HOST: '127.0.0.1',
      DEBUG_HOST: '127.0.0.1',
      PORT: String(http),
      GRPC_PORT: String(grpc),
      DEBUG_PORT: String(debug),
      CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${xds}`,
      RATELANE_XDS_ADDRESS: `127.0.0.1:${xds}`,
      RATELANE_ADMIN_ADDRESS: `127.0.0.1:${admin}`,
      RATELANE_ADMIN_URL: `http://127.0.0.1:${admin}`,
    },
    healthOf: {
      worker: `http://127.0.0.1:${http}/healthcheck`,
      admin: `http://127.0.0.1:${admin}/healthcheck`,
    },
    substitutions: [
      ['https://example.com/rules.git', folder],
      ['localhost:6379', redis.url],
      // The control plane in a pipeline has workers; this one has none.
      ['status --wait', 'status --min-workers 0 --wait'],
      ['npm run -s client --', `npm run -s client -- -dial_string 127.0.0.1:${grpc}`],
    ],
  };
}

/** Resolves when the server answers; returns a function that ends it and all its processes. */
async function startServer(
  t: ExecutionContext,
  sandbox: Sandbox,
  command: string,
  health: string,
): Promise<() => Promise<void>> {
  const child = spawn('sh', ['-c', command], {
    cwd: sandbox.folder,
    env: sandbox.environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const signal = (name: NodeJS.Signals) => {
    try {
      process.kill(-(child.pid ?? 0), name);
    } catch {
      // All processes of its group have ended.
    }
  };
  t.teardown(() => signal('SIGKILL'));
  await eventually(`${command} is ready`, async () => {
    if (hasEnded(child)) throw new Error(`${command} ended: ${output}`);
    const answer = await fetch(health).catch(() => undefined);
    await answer?.body?.cancel();
    return answer?.status === 200;
  });
  return async () => {
    signal('SIGTERM');
    await closed;
  };
}

test('every command of the README works as it stands', async (t) => {
  t.timeout(600_000);
  const sandbox = await prepare(t);
  let stop = async () => {};
  for (const shown of readCommands()) {
    const command = sandbox.substitutions.reduce((text, [a, b]) => text.replaceAll(a, b), shown);
    const server = servers.find((each) => shown.includes(each.command));
    if (server !== undefined) {
      await stop();
      stop = await startServer(t, sandbox, command, sandbox.healthOf[server.readyAt]);
      t.log(`ready: ${shown}`);
      continue;
    }
    const options = { cwd: sandbox.folder, env: sandbox.environment, timeout: commandTimeoutMs };
    const { stdout } = await run('sh', ['-c', command], options);
    t.not(stdout, '', shown);
    t.log(`done: ${shown}`);
  }
  await stop();
});
