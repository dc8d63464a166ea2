// Makes node_modules what package-lock.json defines, before every npm script that needs it: at once
// when nothing is to do, and with its progress when something is.
//   node shared/setup/install-packages.mjs [--dev]
// Without --dev only the packages that the programs need. Plain JavaScript for Node 20 and later.
import { spawn, spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { lstat, readdir, rm } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { basename, delimiter, dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { takeInstallLock } from './install-lock.mjs';
import {
  bundledNode,
  missingPackages,
  neededNodeMajor,
  runningNodeMajor,
} from './installed-packages.mjs';
import { explainNpmFailure } from './npm-failure.mjs';
import { startProgress } from './progress.mjs';

const installTimeoutMs = 15 * 60_000;
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
/** Written by npm when it has finished; its absence means that node_modules is not whole. */
const npmRecord = join(root, 'node_modules', '.package-lock.json');
const withDev = process.argv.includes('--dev');

/** A failure that the reader can do something about. */
class SetupError extends Error {}

try {
  await main();
} catch (error) {
  if (!(error instanceof SetupError)) {
    throw error;
  }
  print(error.message);
  process.exitCode = 1;
}

async function main() {
  if (bundledNode(root) === undefined && runningNodeMajor() < neededNodeMajor) {
    throw new SetupError(
      `Node >= ${neededNodeMajor} is needed. This is Node ${process.versions.node}, and for ` +
        `${process.platform} ${process.arch} none is included: install Node ${neededNodeMajor} and start again.`,
    );
  }
  const reason = missing();
  if (reason === undefined) {
    return;
  }
  const stopWaiting = startProgress(() => 'waiting for another installation of the packages');
  let lock;
  try {
    lock = await takeInstallLock(join(root, '.installing'), installTimeoutMs);
  } catch (error) {
    throw new SetupError(`cannot install packages into ${root}: ${error.message}`);
  } finally {
    stopWaiting();
  }
  if (lock === undefined) {
    throw new SetupError('another installation of the packages did not end; giving up');
  }
  try {
    if (lock.takenOver) {
      rmSync(npmRecord, { force: true });
    }
    if (missing() !== undefined) {
      await install(reason, lock);
    }
  } finally {
    lock.release();
  }
}

function missing() {
  try {
    return missingPackages(root, withDev);
  } catch (error) {
    throw new SetupError(error.message);
  }
}

async function install(reason, lock) {
  const startedMs = Date.now();
  print(`installing ${withDev ? 'all' : 'the'} packages (${reason}) ...`);
  let sizeMb = 0;
  let measuring = false;
  const stopReport = startProgress((seconds) => {
    lock.touch();
    if (!measuring) {
      measuring = true;
      void sizeOfFolderMb(join(root, 'node_modules')).then((mb) => {
        sizeMb = mb;
        measuring = false;
      });
    }
    return `installing packages: ${seconds} s, ${sizeMb} MB`;
  });
  const cache = temporaryCache();
  let outcome;
  try {
    if (!existsSync(npmRecord)) {
      // A folder that is there was left by an interrupted installation: npm would take it for complete.
      await rm(join(root, 'node_modules'), { recursive: true, force: true });
    }
    const cacheFlags = cache === undefined ? [] : ['--cache', cache];
    outcome = await runNpm(cacheFlags);
    if (outcome.unreachable) {
      const fromCache = await runNpm([...cacheFlags, '--offline']);
      outcome = fromCache.code === 0 ? fromCache : outcome;
    }
  } finally {
    stopReport();
    if (cache !== undefined) {
      rmSync(cache, { recursive: true, force: true });
    }
  }
  if (outcome.code !== 0) {
    rmSync(npmRecord, { force: true });
  }
  if (outcome.endedBy !== undefined) {
    throw new SetupError(`interrupted by ${outcome.endedBy}; the packages are not installed`);
  }
  if (outcome.code !== 0) {
    const { text, hint } = explainNpmFailure(outcome.output);
    process.stderr.write(outcome.output.replace(/^(?=.)/gm, '    '));
    throw new SetupError(`the packages are not installed: ${text}. ${hint}`);
  }
  checkBundledNode();
  const left = missing();
  if (left !== undefined) {
    throw new SetupError(
      `npm reported success, but ${left}. If package.json was changed, run "npm install" once, so that package-lock.json agrees with it.`,
    );
  }
  const seconds = ((Date.now() - startedMs) / 1000).toFixed(1);
  const mb = await sizeOfFolderMb(join(root, 'node_modules'));
  print(`packages installed in ${seconds} s (${mb} MB in node_modules)`);
}

/**
 * Resolves with npm's exit code and what it wrote (which matters only when it fails); `endedBy` is
 * the signal by which a person ended us, `unreachable` that the registry did not answer at all, which
 * npm itself would take minutes to report.
 */
function runNpm(extraFlags) {
  const [command, first] = npmCommand();
  return new Promise((resolve) => {
    const child = spawn(command, [...first, ...npmFlags(), ...extraFlags], {
      cwd: root,
      env: { ...process.env, PATH: pathWithoutOwnBin() },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: installTimeoutMs,
    });
    let endedBy;
    const end = (signal) => {
      endedBy = signal;
      child.kill(signal);
    };
    process.once('SIGINT', end);
    process.once('SIGTERM', end);
    let output = '';
    let answered = false;
    let unreachable = false;
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        if (/^npm http (fetch GET \d|cache )/.test(line)) {
          answered = true;
          return;
        }
        output = `${output}${line}\n`.slice(-20_000);
        if (!answered && /^npm http fetch .* attempt [3-9] failed with/.test(line)) {
          unreachable = true;
          child.kill();
        }
      });
    }
    child.on('error', (error) => {
      const text = error.code === 'ENOENT' ? 'there is no npm in the PATH' : error.message;
      resolve({ code: 1, output: `${text}\n` });
    });
    child.on('close', (code) => {
      process.removeListener('SIGINT', end);
      process.removeListener('SIGTERM', end);
      resolve({ code: code ?? 1, output, endedBy, unreachable });
    });
  });
}

function npmFlags() {
  return [
    // Not `ci`: it refuses a lock file that was made where a registry mirror lacks some platforms' optional
    // packages. The result is compared with the lock file afterwards.
    'install',
    '--no-save',
    // No package needs its install script: the bundled Node and the compilers come as files.
    '--ignore-scripts',
    withDev ? '--include=dev' : '--omit=dev',
    '--include=optional',
    '--no-audit',
    '--no-fund',
    '--no-progress',
    '--no-update-notifier',
    '--loglevel=http',
    '--fetch-retries=3',
    '--fetch-retry-mintimeout=1000',
    '--fetch-retry-maxtimeout=8000',
  ];
}

/** The npm that started us, on its own Node; else the one in the PATH. */
function npmCommand() {
  const { npm_execpath: npm, npm_node_execpath: node } = process.env;
  const isNpm = npm !== undefined && basename(npm) === 'npm-cli.js' && existsSync(npm);
  if (isNpm && node !== undefined && !node.startsWith(join(root, 'node_modules'))) {
    return [node, [npm]];
  }
  return [process.platform === 'win32' ? 'npm.cmd' : 'npm', []];
}

/** npm may replace what is in node_modules: it must not run on the Node inside it. */
function pathWithoutOwnBin() {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder !== join(root, 'node_modules', '.bin'))
    .join(delimiter);
}

/** A cache folder for this run where the user's own cannot be written (no home, another's home). */
function temporaryCache() {
  const cache = process.env.npm_config_cache ?? join(homedir(), '.npm');
  try {
    mkdirSync(cache, { recursive: true });
    accessSync(cache, constants.W_OK);
    return undefined;
  } catch {
    return mkdtempSync(join(tmpdir(), 'npm-cache-'));
  }
}

/** Where the bundled Node does not run (another C library), ours must be new enough itself. */
function checkBundledNode() {
  const node = bundledNode(root);
  if (node === undefined || spawnSync(node, ['--version'], { timeout: 20_000 }).status === 0) {
    return;
  }
  if (runningNodeMajor() < neededNodeMajor) {
    throw new SetupError(
      `Node >= ${neededNodeMajor} is needed. This is Node ${process.versions.node}, and the one that is ` +
        `included does not run on this system: install Node ${neededNodeMajor} and start again.`,
    );
  }
  rmSync(node, { force: true });
}

async function sizeOfFolderMb(folder) {
  let bytes = 0;
  const folders = [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    // Folders and files come and go while npm works: what is gone counts as nothing.
    const entries = await readdir(next, { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      const path = join(next, entry.name);
      if (entry.isDirectory()) {
        folders.push(path);
      } else {
        bytes += (await lstat(path).catch(() => ({ size: 0 }))).size;
      }
    }
  }
  return Math.round(bytes / 1e6);
}

function print(text) {
  process.stderr.write(`ratelane: ${text}\n`);
}
