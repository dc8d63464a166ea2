// Tests the runner for real, on tests planted in a separate project that uses our packages.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';
import { eventually } from '../support/eventually.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

async function runPlanted(
  t: { teardown(task: () => void): void },
  planted: Readonly<Record<string, string>>,
  options: { ci?: boolean; killAfterText?: string; path?: string } = {},
): Promise<{ code: number | null; lines: string[] }> {
  const folder = createTemporaryFolder(t);
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  cpSync(join(root, 'package.json'), join(folder, 'package.json'));
  mkdirSync(join(folder, 'test'));
  for (const path of ['test/setup', 'test/support', 'compose']) {
    cpSync(join(root, path), join(folder, path), {
      recursive: true,
      filter: (path) => !path.endsWith('.test.ts'),
    });
  }
  mkdirSync(join(folder, 'worker'));
  for (const [name, text] of Object.entries(planted)) {
    writeFileSync(join(folder, 'worker', name), `import test from 'ava';\n${text}\n`);
  }
  // ava refuses to run inside of ava, which it detects by its own variables.
  const { AVA_PATH: _, NODE_CHANNEL_FD: __, ...env } = process.env;
  const child = spawn(process.execPath, ['test/setup/run-tests.ts', 'worker'], {
    cwd: folder,
    env: { ...env, PATH: options.path ?? env['PATH'], CI: String(options.ci === true) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    output += chunk;
    if (options.killAfterText !== undefined && output.includes(options.killAfterText))
      child.kill('SIGTERM');
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, lines: output.trimEnd().split('\n') };
}

/** True even if its parent has not collected its exit code yet. */
function hasEnded(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' });
  return stdout.trim() === '' || stdout.startsWith('Z');
}

test('the last line has the counts, and passing tests end with 0', async (t) => {
  const { code, lines } = await runPlanted(t, {
    'one.test.ts': "test('works', (t) => t.pass());",
    'two.test.ts': "test('works too', (t) => t.pass());",
  });
  t.is(lines.at(-1), '2 passed, 0 failed', lines.join('\n'));
  t.is(code, 0);
});

test('a failed test is shown with its line, its values and the last lines of its programs, and again at the end', async (t) => {
  const { code, lines } = await runPlanted(t, {
    'one.test.ts': `
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { endWithUs } from '../test/support/end-with-us.ts';
test('breaks', async (t) => {
  const child = spawn('sh', ['-c', 'echo done; exit 3']);
  endWithUs(child);
  await once(child, 'close');
  t.is(1, 2);
});
test('works', (t) => t.pass());`,
    'two.test.ts': "test('breaks', (t) => t.true(false));",
  });
  const text = lines.join('\n');
  t.is(lines.at(-1), '1 passed, 2 failed', text);
  t.is(code, 1);
  const failure =
    /^FAILED worker\/one\.test\.ts: breaks\n[\s\S]*?at worker\/one\.test\.ts:10: t\.is\(1, 2\);\n[\s\S]*?sh -c .*\(ended with 3\) wrote last:\n[\s\S]*?\| done\n[\s\S]*?- 1\n\s*\+ 2$/gm;
  t.is(text.match(failure)?.length, 2, text);
  t.is(text.match(/^FAILED worker\/two\.test\.ts: breaks$/gm)?.length, 2, text);
});

test('files of a folder share a process, even if one of them waits while it is loaded', async (t) => {
  const { lines } = await runPlanted(t, {
    'one.test.ts': "await 1;\ntest('works', (t) => t.pass());",
    'two.test.ts': `
const loaded = performance.now();
test.before(() => {});
test.serial('works', (t) => t.pass());
test('the process began before', (t) => t.true(process.ppid > 0 && loaded > 0));`,
  });
  t.is(lines.at(-1), '3 passed, 0 failed', lines.join('\n'));
  t.true(lines.includes('unit tests: 2 files in 1 processes'));
});

test('tests that crash all of ava still end in the counts', async (t) => {
  const { code, lines } = await runPlanted(t, {
    'one.test.ts':
      "test('ends the process', async () => { setTimeout(() => process.exit(3), 50); await new Promise(() => {}); });",
  });
  t.regex(lines.at(-1) ?? '', /^0 passed, [1-9]\d* failed$/);
  t.is(code, 1);
});

test('a test that does not run fails the run where CI=true, and is only named elsewhere', async (t) => {
  const planted = {
    'one.test.ts': "test.skip('later', (t) => t.pass());\ntest('works', (t) => t.pass());",
  };
  const ci = await runPlanted(t, planted, { ci: true });
  t.is(ci.lines.at(-1), '1 passed, 1 failed', ci.lines.join('\n'));
  const laptop = await runPlanted(t, planted);
  t.is(laptop.lines.at(-1), '1 passed, 0 failed', laptop.lines.join('\n'));
  t.true(laptop.lines.some((line) => /^NOT RUN: .*later/.test(line)));
});

test('a file whose server is absent is named and skipped, and all others run; where CI=true that fails', async (t) => {
  const planted = {
    'one.test.ts':
      "import { startRedisServer } from '../test/support/redis-server.ts';\ntest('asks', startRedisServer);",
    'two.test.ts': "test('works', (t) => t.pass());",
  };
  const laptop = await runPlanted(t, planted, { path: '' });
  const text = laptop.lines.join('\n');
  t.is(laptop.lines.at(-1), '1 passed, 0 failed', text);
  t.true(laptop.lines.includes('NOT RUN: worker/one.test.ts: there is no redis-server'), text);
  const ci = await runPlanted(t, planted, { path: '', ci: true });
  t.regex(ci.lines.at(-1) ?? '', /^1 passed, [1-9]\d* failed$/);
});

test('a test that is marked as failing fails the run where CI=true', async (t) => {
  const planted = { 'one.test.ts': "test.failing('known', (t) => t.fail());" };
  const { code, lines } = await runPlanted(t, planted, { ci: true });
  t.is(code, 1);
  t.true(lines.some((line) => line.includes('worker/one.test.ts:2 (failing)')));
});

test('a run that is ended from outside ends all its processes, and prints the counts so far', async (t) => {
  const { code, lines } = await runPlanted(
    t,
    {
      'one.test.ts': `
import { spawn } from 'node:child_process';
test.serial('works', (t) => t.pass());
test.serial('waits', async () => {
  const child = spawn('sleep', ['600'], { detached: true });
  console.error('waiting beside ' + child.pid);
  await new Promise((r) => setTimeout(r, 60000));
});`,
    },
    { killAfterText: '! waiting beside ' },
  );
  const text = lines.join('\n');
  t.is(lines.at(-1), '1 passed, 1 failed', text);
  t.is(code, 1);
  const pid = Number(/waiting beside (\d+)/.exec(text)?.[1]);
  await eventually('it has ended', () => hasEnded(pid));
});

test('no matching test file is a failure', async (t) => {
  const { code, lines } = await runPlanted(t, {});
  t.is(lines.at(-1), '0 passed, 1 failed', lines.join('\n'));
  t.is(code, 1);
});
