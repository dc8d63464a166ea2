import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { createTemporaryFolder } from '../support/temporary-folder.ts';

const present = '#!/bin/sh\n';
const commands = {
  'redis-server': present,
  memcached: present,
  git: present,
  curl: present,
  h2load: present,
  'chromium-headless-shell': present,
  envoy: present,
  'valkey-server': present,
  h2spec: present,
  grpcurl: present,
  'compose-spec': present,
  'chart-check': present,
  'proto-set': present,
  etcd: present,
  'kube-apiserver': present,
  promtool: present,
};

/** A copy of the set-up in a place where nothing is installed, with these commands in the PATH. */
function createSandbox(t: ExecutionContext, inPath: Readonly<Record<string, string>>) {
  const root = createTemporaryFolder(t);
  cpSync(import.meta.dirname, join(root, 'test', 'setup'), { recursive: true });
  const progress = 'compose/install-progress.mjs';
  cpSync(join(import.meta.dirname, '../..', progress), join(root, progress));
  const path = mkdtempSync(join(root, 'path-'));
  for (const [name, text] of Object.entries(inPath)) {
    writeFileSync(join(path, name), text);
    chmodSync(join(path, name), 0o755);
  }
  return {
    /** The only folder in the PATH. */
    path,
    run(ci: boolean, ...needed: string[]) {
      const script = join(root, 'test', 'setup', 'install-servers.mjs');
      const { status, stdout, stderr } = spawnSync(process.execPath, [script, ...needed], {
        env: { PATH: path, CI: String(ci) },
        encoding: 'utf8',
        timeout: 30_000,
      });
      return { status, output: stdout + stderr };
    },
  };
}

function without(...names: (keyof typeof commands)[]): Record<string, string> {
  return Object.fromEntries(
    Object.entries(commands).filter(([name]) => !names.includes(name as keyof typeof commands)),
  );
}

test('nothing is printed when all servers are installed', (t) => {
  t.deepEqual(createSandbox(t, commands).run(true), { status: 0, output: '' });
});

test('a Chromium with a desktop is as good as one without', (t) => {
  const inPath = { ...without('chromium-headless-shell'), chromium: present };
  t.deepEqual(createSandbox(t, inPath).run(true), { status: 0, output: '' });
  const { output } = createSandbox(t, without('chromium-headless-shell')).run(true);
  t.regex(output, /not found in the PATH: chromium-headless-shell\./);
});

test('a caller that needs one server installs no other, and does not continue without it', (t) => {
  const { run } = createSandbox(t, { 'redis-server': present });
  t.deepEqual(run(false, 'redis-server'), { status: 0, output: '' });
  const { status, output } = run(false, 'memcached');
  t.is(status, 1);
  t.regex(output, /not found in the PATH: memcached\.\n.*sudo apt-get install memcached\n$/s);
});

test('a server that is missing and cannot be installed is named, and fails only where CI=true', (t) => {
  const { run } = createSandbox(t, without('redis-server', 'git', 'h2load'));
  const laptop = run(false);
  t.is(laptop.status, 0);
  t.regex(laptop.output, /not found in the PATH: redis-server, git, h2load\. Tests that need them/);
  t.regex(laptop.output, /sudo apt-get install redis-server git nghttp2-client\n/);
  t.is(run(true).status, 1);
});

test('a missing server is installed where permitted', (t) => {
  const isRoot = process.getuid?.() === 0;
  const { path, run } = createSandbox(t, without('memcached'));
  writeFileSync(
    join(path, 'apt-get'),
    `#!/bin/sh
case "$*" in *install*) echo "#!/bin/sh" > ${path}/memcached; /bin/chmod +x ${path}/memcached;; esac
`,
    { mode: 0o755 },
  );
  const { status, output } = run(true);
  t.is(status, isRoot ? 0 : 1, output);
  t.regex(output, isRoot ? /installing memcached \.\.\.\n$/ : /not found in the PATH: memcached/);
});

test('programs in Go are built where Go is installed, from pinned sources', (t) => {
  const { path, run } = createSandbox(t, without('h2spec'));
  writeFileSync(
    join(path, 'go'),
    `#!/bin/sh
echo "$GOFLAGS $* in $(/bin/pwd)" > ${path}/asked
[ -f go.sum ] && /bin/mkdir -p "$(/usr/bin/dirname "$3")" && echo "#!/bin/sh" > "$3" && /bin/chmod +x "$3"
`,
    { mode: 0o755 },
  );
  const first = run(true);
  t.is(first.status, 0, first.output);
  t.regex(first.output, /building h2spec with Go \.\.\.\n$/);
  t.regex(
    readFileSync(join(path, 'asked'), 'utf8'),
    /^-mod=readonly build -o \S+\/h2spec github\.com\/summerwind\/h2spec\/cmd\/h2spec in \S+\/go-tools\n$/,
  );
  t.deepEqual(run(true), { status: 0, output: '' });
});

test('without Go its programs are named, and that fails only where CI=true', (t) => {
  const { run } = createSandbox(t, without('h2spec', 'grpcurl'));
  const laptop = run(false);
  t.is(laptop.status, 0);
  t.regex(
    laptop.output,
    /not there: h2spec, grpcurl\. Tests that need them are skipped\. .*Go 1\.22/,
  );
  t.is(run(true).status, 1);
});
