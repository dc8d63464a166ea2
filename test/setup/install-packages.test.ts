// Runs the installer in a small project of its own, with a configurable substitute for npm: every fresh clone tests the
// real one.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { eventually } from '../support/eventually.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const lock = {
  packages: {
    '': { name: 'sample' },
    'node_modules/alpha': { version: '1.0.0', integrity: 'sha512-a' },
    'node_modules/beta': { version: '2.0.0', integrity: 'sha512-b', dev: true },
    'node_modules/elsewhere': { version: '3.0.0', integrity: 'sha512-c', optional: true },
  },
};
type Packages = Record<string, object>;

const production: Packages = { 'node_modules/alpha': lock.packages['node_modules/alpha'] };
const everything: Packages = {
  ...production,
  'node_modules/beta': lock.packages['node_modules/beta'],
};

/** Records its arguments, prints, waits for the plan's file or time, and writes the record that npm writes. */
const fakeNpm = `
const fs = require('node:fs');
const plan = JSON.parse(fs.readFileSync('plan.json', 'utf8'));
fs.appendFileSync('calls.txt', process.argv.slice(2).join(' ') + '\\n');
process.stderr.write(plan.output ?? '');
if (plan.waitFor === undefined) finish();
else setInterval(() => fs.existsSync(plan.waitFor) && finish(), 20);
function finish() {
  if (plan.installs) {
    fs.mkdirSync('node_modules', { recursive: true });
    const record = JSON.stringify({ packages: plan.installs });
    fs.writeFileSync('node_modules/.package-lock.json', record);
  }
  process.exit(plan.exitCode ?? 0);
}
`;

interface Plan {
  readonly installs?: Packages;
  readonly output?: string;
  readonly exitCode?: number;
  /** The name of a file in the project. */
  readonly waitFor?: string;
}

interface Run {
  /** The output so far. */
  output(): string;
  readonly ended: Promise<{ code: number | null; output: string }>;
}

const program = 'compose/install-packages.mjs';

function createProject(t: { teardown(task: () => void): void }) {
  const folder = createTemporaryFolder(t);
  mkdirSync(join(folder, 'compose'));
  for (const file of ['install-packages.mjs', 'install-progress.mjs'])
    cpSync(join(import.meta.dirname, '../../compose', file), join(folder, 'compose', file));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
  const npm = join(folder, 'npm-cli.js');
  writeFileSync(npm, fakeNpm);
  const calls = join(folder, 'calls.txt');
  const start = (...args: string[]) => spawnIn(process.execPath, [program, ...args]);
  const spawnIn = (command: string, args: readonly string[]): Run => {
    const child = spawn(command, args, {
      cwd: folder,
      env: {
        ...process.env,
        npm_execpath: npm,
        npm_node_execpath: process.execPath,
        npm_config_cache: join(folder, 'cache'),
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, output }));
    return { output: () => output, ended };
  };
  return {
    folder,
    plan: (plan: Plan) => writeFileSync(join(folder, 'plan.json'), JSON.stringify(plan)),
    calls: () => (existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []),
    start,
    /** `start` without arguments, with a terminal for its output. */
    startOnTerminal() {
      const run = 'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)';
      return spawnIn('python3', ['-c', run, process.execPath, program]);
    },
    /** Starts it as `start` does, and waits until it ends. */
    run: (...args: string[]) => start(...args).ended,
  };
}

test('without packages the production set is installed, and the next start has nothing to do', async (t) => {
  const project = createProject(t);
  project.plan({ installs: production });
  const first = await project.run();
  t.is(first.code, 0, first.output);
  t.regex(first.output, /installing the packages \(no packages are installed\)/);
  t.regex(first.output, /packages installed in [\d.]+ s\n$/);
  t.regex(project.calls()[0] ?? '', /^install .*--ignore-scripts --omit=dev/);

  const second = await project.run();
  t.like(second, { output: '', code: 0 });
  t.is(project.calls().length, 1);
});

test('the development set satisfies a need for the production set, but not the other way round', async (t) => {
  const project = createProject(t);
  project.plan({ installs: everything });
  t.is((await project.run('--dev')).code, 0);
  t.is((await project.run()).output, '');

  const other = createProject(t);
  other.plan({ installs: production });
  await other.run();
  other.plan({ installs: everything });
  t.regex((await other.run('--dev')).output, /installing all packages \(beta is missing\)/);
  t.regex(other.calls()[1] ?? '', /--include=dev/);
});

test('a package whose version differs from the lock file is replaced', async (t) => {
  const project = createProject(t);
  project.plan({ installs: { 'node_modules/alpha': { version: '0.9.0', integrity: 'sha512-x' } } });
  const { code, output } = await project.run();
  t.is(code, 1);
  t.regex(output, /npm reported success, but alpha is 0\.9\.0 instead of 1\.0\.0/);
  project.plan({ installs: production });
  t.is((await project.run()).code, 0);
});

test('on a terminal its progress is one line, which is rewritten', async (t) => {
  const project = createProject(t);
  project.plan({ installs: production, waitFor: 'go' });
  const { output, ended } = project.startOnTerminal();
  const logged = () => output().match(/installing packages: \d+ s/g) ?? [];
  await eventually('it is reported twice', () => logged().length >= 2);
  writeFileSync(join(project.folder, 'go'), '');
  t.is((await ended).code, 0, output());
  const lines = output().split('\n');
  t.is(lines.filter((line) => line.includes('installing packages:')).length, 1, output());
  t.true(output().includes('\r\x1b[Kratelane: packages installed in '), output());
});

test('a failure is one plain sentence below the lines of npm, and does not count as an installation', async (t) => {
  const project = createProject(t);
  project.plan({ installs: production, output: 'npm error code ENOSPC\n', exitCode: 1 });
  const { code, output } = await project.run();
  t.is(code, 1);
  t.regex(output, /^ {4}npm error code ENOSPC$/m);
  t.regex(output, /the packages are not installed: npm failed \(1\); the lines of npm are above/);
  t.false(output.includes('    at '), 'no stack');
  t.regex((await project.run()).output, /no packages are installed/);
});

test('warnings of npm are not shown when it succeeds', async (t) => {
  const project = createProject(t);
  project.plan({ installs: production, output: 'npm warn EBADENGINE\n' });
  t.false((await project.run()).output.includes('EBADENGINE'));
});

test('two installers at once install once', async (t) => {
  const project = createProject(t);
  project.plan({ installs: production, waitFor: 'go' });
  const first = project.start();
  await eventually('npm has begun', () => project.calls().length > 0);
  const second = project.start();
  const isWaiting = (one: Run) => one.output().includes('waiting for another installation');
  await eventually('the other waits', () => isWaiting(second));
  writeFileSync(join(project.folder, 'go'), '');
  t.is((await first.ended).code, 0);
  t.is((await second.ended).code, 0);
  t.is(project.calls().length, 1);
  t.false(isWaiting(first));
  t.false(existsSync(join(project.folder, '.installing')));
});

test('a lock left by a killed installer is ignored, whatever its age, and packages are installed again', async (t) => {
  const project = createProject(t);
  project.plan({ installs: production });
  await project.run();
  const lockFile = join(project.folder, '.installing');
  writeFileSync(lockFile, 'another one');
  const inAnHour = new Date(Date.now() + 3_600_000);
  utimesSync(lockFile, inAnHour, inAnHour);
  rmSync(join(project.folder, 'node_modules', '.package-lock.json'));
  const stale = join(project.folder, 'node_modules', 'half-written');
  writeFileSync(stale, '');
  t.is((await project.run()).code, 0);
  t.is(project.calls().length, 2);
  t.false(existsSync(stale));
  t.false(existsSync(lockFile));
});

test('a missing lock file is named', async (t) => {
  const project = createProject(t);
  rmSync(join(project.folder, 'package-lock.json'));
  const { code, output } = await project.run();
  t.is(code, 1);
  t.regex(output, /package-lock\.json is missing or is not JSON/);
});
