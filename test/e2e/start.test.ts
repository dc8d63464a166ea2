// `npm start` from a newcomer's point of view: what it prints can be pasted, and works as stated.
import { execFile, spawn } from 'node:child_process';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import test from 'ava';
import { hasEnded } from '../support/end-with-us.ts';
import { eventually } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const root = join(import.meta.dirname, '..', '..');
const run = promisify(execFile);

/** For a sample that runs beside others. */
async function freePorts() {
  return {
    PORT: String(await freePort()),
    GRPC_PORT: String(await freePort()),
    DEBUG_PORT: String(await freePort()),
    CONFIG_GRPC_XDS_SERVER_URL: `127.0.0.1:${await freePort()}`,
    RATELANE_ADMIN_ADDRESS: `127.0.0.1:${await freePort()}`,
  };
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  test(`${signal} to all processes of a terminal ends npm start and its programs quietly, with 0`, async (t) => {
    const child = spawn('npm', ['start'], {
      cwd: root,
      env: { ...process.env, ...(await freePorts()) },
      stdio: ['ignore', 'pipe', 'pipe'],
      // In its own process group, like a foreground command of a shell.
      detached: true,
    });
    const signalGroup = (name: NodeJS.Signals) => process.kill(-(child.pid ?? Number.NaN), name);
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (chunk: string) => {
        output += chunk;
      });
    }
    // All processes write there: it is closed when the last one has ended.
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    t.teardown(() => hasEnded(child) || signalGroup('SIGQUIT'));
    await eventually('the invitation', () => output.includes('Ctrl-C stops'));
    const { length } = output;
    signalGroup(signal);
    t.is(await ended, 0);
    t.notRegex(output.slice(length), /second signal|level=(?:warning|error)/);
  });
}

test('npm start -- --help explains what it starts and how to change that, and starts nothing', async (t) => {
  const args = ['compose/start.ts', '--help'];
  const { stdout, stderr } = await run(process.execPath, args, { cwd: root, timeout: 60_000 });
  t.is(stderr, '');
  for (const name of Object.keys(await freePorts())) {
    t.regex(stdout, new RegExp(`^ {2}${name} `, 'm'));
  }
  t.notRegex(stdout, /level=/);
  const other = run(process.execPath, ['compose/start.ts', '--port=1'], {
    cwd: root,
    timeout: 60_000,
  });
  const { code, stderr: printed } = (await t.throwsAsync(other)) as Error & {
    code: number;
    stderr: string;
  };
  t.is(code, 2);
  t.regex(printed, /^npm start accepts no options, and got "--port=1"\n/);
});

test('the printed commands give the results printed beside them', async (t) => {
  // A copy of the tree, since the newcomer changes a rule.
  const folder = createTemporaryFolder(t);
  for (const name of ['package.json', 'proto', 'shared', 'worker', 'control-plane', 'compose'])
    await cp(join(root, name), join(folder, name), { recursive: true });
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'));
  const rulesFile = join(folder, 'compose', 'rules', 'shop.yaml');
  // Per year, so that no window ends during the test.
  const rules = await readFile(rulesFile, 'utf8');
  await writeFile(rulesFile, rules.replace('unit: minute', 'unit: year'));

  const child = spawn(process.execPath, ['compose/start.ts'], {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...(await freePorts()) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  await eventually('the invitation', () => output.includes('Ctrl-C stops'));
  t.notRegex(output, /level=(?:warning|error)/, 'all is well with our own sample');
  t.regex(output, /level=info msg="Successfully loaded new configuration: /);

  const commands = [...output.matchAll(/^ {3}(curl|perl|npm) .*$/gm)].map((match) =>
    match[0].trim(),
  );
  const paste = async (command: string | undefined) =>
    (await run('sh', ['-c', command ?? 'false'], { cwd: folder })).stdout;
  const [one, three, stats, change, again, status, , undo] = commands;
  const first = await paste(one);
  t.regex(first, /^HTTP\/1\.1 200 /);
  t.regex(first, /"limitRemaining":2/);
  t.is(await paste(three), '200\n200\n429\n');
  t.regex(await paste(stats), /\.over_limit: 1\n(?:.*\n)*.*\.total_hits: 4\n/);
  await paste(change);
  await eventually('the new limit', async () =>
    (await paste(again)).includes('"requestsPerUnit":10'),
  );
  t.regex(
    await paste(status?.replace('npm run -s control-plane --', 'node control-plane/main.ts')),
    /in force/,
  );

  await paste(undo);
  t.is(
    await readFile(rulesFile, 'utf8'),
    rules.replace('unit: minute', 'unit: year'),
    'what other commands of the README need',
  );

  child.kill('SIGTERM');
  t.is(await ended, 0);
});
