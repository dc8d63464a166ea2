// Makes node_modules what package-lock.json defines, before each npm script that needs it. Without --dev it installs
// only the packages that the programs need. Plain JavaScript for Node 20 and later: it runs before anything is installed.
//   node compose/install-packages.mjs [--dev]
import { spawn, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startProgress } from './install-progress.mjs';

/** The first major version of Node that runs TypeScript files as they are. */
const neededNodeMajor = 24;
const timeoutMs = 15 * 60_000;
/** The installer that holds the lock touches it every second. */
const staleLockMs = 10_000;

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const withDev = process.argv.includes('--dev');
/** npm writes it at the end of an installation. */
const npmRecord = join(root, 'node_modules', '.package-lock.json');
const lock = join(root, '.installing');
const token = randomUUID();
const ownNodeIsEnough = Number(process.versions.node.split('.')[0]) >= neededNodeMajor;
const hasBundledNode = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);
const bundledNode = join(root, 'node_modules', '.bin', 'node');
const nodeIsNeeded =
  `Node >= ${neededNodeMajor} is needed. This is Node ${process.versions.node}, and none is included for ` +
  `${process.platform} ${process.arch}: install Node ${neededNodeMajor} and start again.`;

try {
  await main();
} catch (error) {
  print(`the packages are not installed: ${error.message}`);
  process.exitCode = 1;
}

async function main() {
  if (!hasBundledNode && !ownNodeIsEnough) throw new Error(nodeIsNeeded);
  const reason = missing();
  if (reason === undefined) return;
  const wasLeft = await acquireLock();
  try {
    // An installation that did not end left a record that is older than its packages.
    if (wasLeft) rmSync(npmRecord, { force: true });
    if (missing() !== undefined) await install(reason);
  } finally {
    if (holdsLock()) rmSync(lock);
  }
}

/** Describes what node_modules lacks; undefined if nothing. Development packages that are not needed are accepted. */
function missing() {
  const wanted = lockedPackages(join(root, 'package-lock.json'));
  if (wanted === undefined) throw new Error('package-lock.json is missing or is not JSON');
  const present = lockedPackages(npmRecord);
  if (present === undefined) return 'no packages are installed';
  for (const [path, locked] of Object.entries(wanted)) {
    const installed = present[path];
    const name = path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
    if (path === '' || (locked.dev && !withDev) || (locked.optional && !installed)) continue;
    if (installed === undefined) return `${name} is missing`;
    if (installed.version !== locked.version || installed.integrity !== locked.integrity)
      return `${name} is ${installed.version} instead of ${locked.version}`;
  }
  return ownNodeIsEnough || existsSync(bundledNode) ? undefined : 'the bundled Node is missing';
}

function lockedPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages;
  } catch {
    return undefined;
  }
}

/** Waits while another installer works. Returns whether the lock was left by one that did not end. */
async function acquireLock() {
  const stop = startProgress(() => 'waiting for another installation of the packages');
  try {
    let seen = { mtimeMs: undefined, atMs: 0 };
    for (const endMs = performance.now() + timeoutMs; performance.now() < endMs; await sleep(200)) {
      try {
        writeFileSync(lock, token, { flag: 'wx' });
        return false;
      } catch (error) {
        if (error.code !== 'EEXIST') throw error;
      }
      // Whether it changes, not its time: clocks differ and are set back.
      const mtimeMs = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
      if (mtimeMs !== seen.mtimeMs) seen = { mtimeMs, atMs: performance.now() };
      else if (performance.now() - seen.atMs >= staleLockMs) {
        writeFileSync(lock, token);
        // Of two installers that found the same stale lock, the last one to write it holds it.
        await sleep(300);
        if (holdsLock()) return true;
      }
    }
  } finally {
    stop();
  }
  throw new Error('another installation of the packages did not end');
}

function holdsLock() {
  return existsSync(lock) && readFileSync(lock, 'utf8') === token;
}

async function install(reason) {
  print(`installing ${withDev ? 'all' : 'the'} packages (${reason}) ...`);
  const startedMs = performance.now();
  const stop = startProgress((seconds) => {
    if (holdsLock()) utimesSync(lock, new Date(), new Date());
    return `installing packages: ${seconds} s`;
  });
  // npm takes a folder that an interrupted installation left for a complete one.
  if (!existsSync(npmRecord)) rmSync(join(root, 'node_modules'), { recursive: true, force: true });
  const { code, output } = await runNpm().finally(stop);
  if (code !== 0) {
    rmSync(npmRecord, { force: true });
    process.stderr.write(output.replace(/^(?=.)/gm, '    '));
    const lines = output === '' ? '' : '; the lines of npm are above';
    throw new Error(`npm failed (${code})${lines}`);
  }
  if (hasBundledNode && spawnSync(bundledNode, ['--version'], { timeout: 20_000 }).status !== 0) {
    // The system has another C library.
    if (!ownNodeIsEnough) throw new Error(nodeIsNeeded);
    rmSync(bundledNode, { force: true });
  }
  const left = missing();
  if (left !== undefined)
    throw new Error(
      `npm reported success, but ${left}. If package.json was changed, run "npm install" once, so that package-lock.json agrees with it.`,
    );
  print(`packages installed in ${((performance.now() - startedMs) / 1000).toFixed(1)} s`);
}

/** Returns the exit code or signal of npm and the end of its output. */
function runNpm() {
  const { npm_execpath: npm = '', npm_node_execpath: node, PATH = '' } = process.env;
  const command = node && npm.endsWith('npm-cli.js') ? [node, npm] : ['npm'];
  const flags = [
    // Not `ci`: it removes packages that running programs use, and refuses a lock file from a registry mirror that
    // lacks the optional packages of some platforms. The result is compared with the lock file afterwards.
    'install',
    '--no-save',
    '--ignore-scripts',
    withDev ? '--include=dev' : '--omit=dev',
    '--include=optional',
    '--prefer-offline',
    '--fetch-retries=3',
    '--fetch-retry-mintimeout=1000',
    '--fetch-retry-maxtimeout=8000',
    ...['--no-audit', '--no-fund', '--no-progress', '--no-update-notifier'],
    ...cacheFlags(),
  ];
  // npm can replace the Node in node_modules: it must not run on it.
  const ownBin = join(root, 'node_modules', '.bin');
  const path = PATH.split(delimiter).filter((folder) => folder !== ownBin);
  return new Promise((resolve) => {
    const child = spawn(command[0], [...command.slice(1), ...flags], {
      cwd: root,
      env: { ...process.env, PATH: path.join(delimiter) },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: timeoutMs,
    });
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => child.kill(signal));
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk) => {
        output = `${output}${chunk}`.slice(-20_000);
      });
    child.on('error', (error) => resolve({ code: error.code, output: `${error.message}\n` }));
    child.on('close', (code, signal) => resolve({ code: signal ?? code, output }));
  });
}

/** Selects a temporary cache if the user's own cannot be written. */
function cacheFlags() {
  const cache = process.env.npm_config_cache ?? join(homedir(), '.npm');
  try {
    mkdirSync(cache, { recursive: true });
    accessSync(cache, constants.W_OK);
    return [];
  } catch {
    const own = mkdtempSync(join(tmpdir(), 'npm-cache-'));
    process.once('exit', () => rmSync(own, { recursive: true, force: true }));
    return ['--cache', own];
  }
}

function print(text) {
  process.stderr.write(`ratelane: ${text}\n`);
}
