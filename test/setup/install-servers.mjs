// Sees to the servers and tools that the tests start (Redis, memcached, Git): installs what is
// missing where that is possible, else says what to do. Plain JavaScript, as in shared/setup.
import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

const servers = [
  { command: 'redis-server', aptPackage: 'redis-server' },
  { command: 'memcached', aptPackage: 'memcached' },
  { command: 'git', aptPackage: 'git' },
];
const aptTimeoutMs = 5 * 60_000;

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
    if (process.env.CI === 'true') {
      say('With CI=true that is a failure.');
      process.exitCode = 1;
    }
  }
}

function missingServers() {
  return servers.filter((server) => !isInPath(server.command));
}

function isInPath(command) {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

async function installWithApt(wanted) {
  const packages = wanted.map((server) => server.aptPackage);
  say(`installing ${packages.join(', ')} ...`);
  const startedMs = Date.now();
  const timer = setInterval(() => {
    const seconds = Math.round((Date.now() - startedMs) / 1000);
    say(`installing ${packages.join(', ')}: ${seconds} s`);
  }, 1000);
  try {
    // Package lists may be absent or old; a failing update still leaves what is known.
    await runApt(['update']);
    const outcome = await runApt(['install', '--yes', '--no-install-recommends', ...packages]);
    if (outcome.code !== 0) {
      process.stderr.write(outcome.output.replace(/^(?=.)/gm, '    '));
    }
  } finally {
    clearInterval(timer);
  }
}

function runApt(args) {
  return new Promise((resolve) => {
    const child = spawn('apt-get', ['-q', ...args], {
      // A package must neither ask questions nor start its server as a service.
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: aptTimeoutMs,
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
