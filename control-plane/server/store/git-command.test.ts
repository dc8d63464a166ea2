import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { eventually } from '../../../test/support/eventually.ts';
import { createTemporaryFolder } from '../../../test/support/temporary-folder.ts';
import { createGit, type GitError, mostProcesses } from './git-command.ts';

/** Creates a script that replaces git. */
function createScript(t: ExecutionContext, lines: string, variables = {}) {
  const folder = createTemporaryFolder(t);
  writeFileSync(join(folder, 'git'), `#!/bin/sh\n${lines}\n`, { mode: 0o755 });
  const address = {
    url: 'https://git.example/x',
    shown: 'https://git.example/x',
    credentials: undefined,
    credentialScope: 'https://git.example',
    secrets: [],
  };
  return {
    folder,
    git: createGit({
      repository: folder,
      address,
      environment: { PATH: `${folder}:${process.env['PATH']}`, ...variables },
      readCredentials: async () => ({ username: 'ann', password: 's3cret/pass' }),
    }),
  };
}

async function failureOf(run: Promise<unknown>): Promise<GitError> {
  return run.then(
    () => {
      throw new Error('it did not fail');
    },
    (error) => error,
  );
}

test('an answer is complete, even if this process was busy while it arrived', async (t) => {
  const { git } = createScript(t, 'head -c 60000 /dev/zero');
  const run = git.run(['x'], { timeoutMs: 60_000 });
  await new Promise((resolve) => setImmediate(resolve));
  execFileSync('sleep', ['1.5']);
  t.is((await run).length, 60_000);
});

test('however many commands are requested, eight processes run at once, and each command gets its turn', async (t) => {
  const { git, folder } = createScript(
    t,
    'mkdir "$GIT_DIR/run.$$"; ls -d "$GIT_DIR"/run.* | wc -l >> "$GIT_DIR/counts"; sleep 0.05; rmdir "$GIT_DIR/run.$$"; echo done',
  );
  const stopped = new AbortController();
  const all = Array.from({ length: 40 }, () => git.run(['x'], { timeoutMs: 60_000 }));
  const late = git.run(['x'], { timeoutMs: 60_000, signal: stopped.signal });
  stopped.abort(new Error('not any more'));
  await t.throwsAsync(late, { message: 'not any more' });
  t.true((await Promise.all(all)).every((answer) => answer.toString() === 'done\n'));
  const counts = readFileSync(join(folder, 'counts'), 'utf8').trim().split('\n').map(Number);
  t.is(counts.length, 40);
  t.true(Math.max(...counts) <= mostProcesses, counts.join());
});

test('a process that keeps standard error open does not delay the answer', async (t) => {
  const { git, folder } = createScript(
    t,
    'sleep 600 >/dev/null & echo $! > "$GIT_DIR/pid"; echo done',
  );
  t.is((await git.run(['x'], { timeoutMs: 60_000 })).toString(), 'done\n');
  // The background process is still running.
  process.kill(Number(readFileSync(join(folder, 'pid'), 'utf8')));
});

test('a command that is too slow is ended, with all processes that it has started', async (t) => {
  const { git, folder } = createScript(t, 'sleep 60 & echo $! > "$GIT_DIR/pid"; sleep 60');
  // Long enough for a busy machine to start the helper.
  const error = await failureOf(git.run(['fetch'], { timeoutMs: 10_000 }));
  t.is(error.message, 'git fetch did not answer within 10s');
  t.is(error.output, undefined);
  const pid = Number(readFileSync(join(folder, 'pid'), 'utf8'));
  await eventually('the end of the helper', () => {
    try {
      // A zombie, which has ended but was not waited for, counts as ended.
      return readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
    } catch {
      return true;
    }
  });
});

test('git is ended when its answer is too long', async (t) => {
  const { git } = createScript(t, 'exec cat /dev/zero');
  const error = await failureOf(git.run(['log'], { timeoutMs: 60_000, maxBytes: 1_000 }));
  t.is(error.message, 'git log answered with more than 1000 bytes');
});

test("an error contains git's message without passwords", async (t) => {
  const { git } = createScript(
    t,
    `echo "warning: config remote shorthand cannot begin with '/': /limits.git.promisor" >&2
echo "remote: welcome" >&2
echo "some noise" >&2
echo "fatal: no access to https://ann:$RATELANE_GIT_PASSWORD@git.example/ (s3cret%2Fpass)" >&2
exit 128`,
  );
  const error = await failureOf(git.run(['fetch'], { timeoutMs: 60_000, isRemote: true }));
  t.is(
    error.message,
    'git fetch failed: remote: welcome; some noise; fatal: no access to https://ann:*****@git.example/ (*****)',
  );
  t.is(error.code, 'store');
  t.notRegex(error.output ?? '', /s3cret/);
});

// Proof of SECURITY.md: is trusted for commits; cannot start a program or prompt here
test('git gets the variables for reaching the remote, and not those that redirect it', async (t) => {
  const variables = {
    HTTPS_PROXY: 'http://proxy',
    GIT_SSH_COMMAND: 'ssh -i key',
    GIT_SSL_CAINFO: '/ca.pem',
    GIT_WORK_TREE: '/elsewhere',
    GIT_DIR: '/elsewhere',
    GIT_TRACE: '1',
    GIT_TRACE_CURL: '1',
    GIT_CONFIG_PARAMETERS: "'a.b=c'",
    GIT_ALLOW_PROTOCOL: 'ext',
  };
  const { git, folder } = createScript(t, 'env', variables);
  const lines = (await git.run(['x'], { timeoutMs: 60_000 })).toString().split('\n');
  for (const line of [
    'HTTPS_PROXY=http://proxy',
    'GIT_SSH_COMMAND=ssh -i key',
    'GIT_SSL_CAINFO=/ca.pem',
    `GIT_DIR=${folder}`,
    'GIT_ALLOW_PROTOCOL=file:git:http:https:ssh',
    'GIT_TERMINAL_PROMPT=0',
  ]) {
    t.true(lines.includes(line), line);
  }
  t.deepEqual(
    lines.filter((line) => /elsewhere|TRACE|PARAMETERS|PASSWORD/.test(line)),
    [],
  );
});

test('a git that is not installed is reported as that', async (t) => {
  const { git } = createScript(t, '', { PATH: '/nonexistent' });
  const error = await failureOf(git.run(['fetch'], { timeoutMs: 60_000 }));
  t.is(error.message, 'git fetch cannot be started: spawn git ENOENT');
});

test('git that cannot start for lack of file descriptors is reported as such, and the process continues', (t) => {
  const { folder } = createScript(t, 'echo done');
  const script = join(folder, 'few-descriptors.mjs');
  // First no descriptor is left, then some but too few for the pipes, then enough.
  writeFileSync(
    script,
    `import { closeSync, openSync } from 'node:fs';
import { createGit } from '${new URL('git-command.ts', import.meta.url).href}';
const git = createGit({
  repository: '.',
  address: { url: 'x', shown: 'x', credentials: undefined, credentialScope: undefined, secrets: [] },
  environment: process.env,
  readCredentials: async () => undefined,
});
const say = async () => {
  const run = git.run(['fetch'], { timeoutMs: 60_000 });
  return String(await run.catch((error) => error)).trim();
};
// Files that are opened lazily are open by now, including the output.
console.log(await say());
const open = [];
try {
  for (;;) open.push(openSync('/dev/null'));
} catch (error) {
  if (error.code !== 'EMFILE') throw error;
}
for (const free of [0, 3, open.length]) {
  for (const descriptor of open.splice(0, free)) closeSync(descriptor);
  console.log(await say());
}
`,
  );
  const shell = 'ulimit -n 64; exec "$0" "$1"';
  const output = execFileSync('sh', ['-c', shell, process.execPath, script], {
    encoding: 'utf8',
    env: { ...process.env, PATH: `${folder}:${process.env['PATH']}` },
  });
  const refused =
    'GitError: git fetch cannot be started: spawn git EMFILE: raise the limit of open files (ulimit -n, LimitNOFILE)';
  t.deepEqual(output.trim().split('\n'), ['done', refused, refused, 'done']);
});

test('a failure of ssh is reported with its reason, without the surrounding lines', async (t) => {
  const tail =
    'fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists.';
  const changed = `${'@'.repeat(60)}\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n${'@'.repeat(60)}\nIT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\nSomeone could be eavesdropping on you right now (man-in-the-middle attack)!\nHost key for git.example has changed and you have requested strict checking.\nHost key verification failed.`;
  for (const [reply, shown] of [
    [
      'Host key verification failed.',
      /^git x failed: Host key verification failed\.; fatal: Could/,
    ],
    ['Connection closed by 192.0.2.7 port 22', /^git x failed: Connection closed by 192\.0\.2\.7/],
    [
      changed,
      /^git x failed: Host key for git\.example has changed.*; Host key verification failed/,
    ],
    ['warning: of no interest', /^git x failed: fatal: Could not read from remote repository\.$/],
  ] as const) {
    const { git } = createScript(t, `cat >&2 <<'END'\n${reply}\n${tail}\nEND\nexit 128`);
    t.regex((await failureOf(git.run(['x'], { timeoutMs: 20_000 }))).message, shown);
  }
});

test('of rotated credentials, the latest and those of the running command are hidden', async (t) => {
  const folder = createTemporaryFolder(t);
  writeFileSync(join(folder, 'git'), '#!/bin/sh\necho "$RATELANE_GIT_PASSWORD" >&2\nexit 1\n', {
    mode: 0o755,
  });
  let count = 0;
  const git = createGit({
    repository: folder,
    address: {
      url: 'x',
      shown: 'x',
      credentials: undefined,
      credentialScope: undefined,
      secrets: [],
    },
    environment: { PATH: `${folder}:${process.env['PATH']}` },
    readCredentials: async () => ({ username: 'ann', password: `token-number-${++count}` }),
  });
  const runs = [1, 2, 3].map(() => git.run(['x'], { timeoutMs: 20_000, isRemote: true }));
  for (const run of runs) t.notRegex((await failureOf(run)).message, /token-number/);
});
