import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test from 'ava';

const script = fileURLToPath(new URL('install-servers.mjs', import.meta.url));

/** A PATH with these commands and nothing else. */
function createPath(
  t: { teardown(task: () => void): void },
  commands: Readonly<Record<string, string>>,
): string {
  const folder = mkdtempSync(join(tmpdir(), 'ratelane-path-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries(commands)) {
    writeFileSync(join(folder, name), text);
    chmodSync(join(folder, name), 0o755);
  }
  return folder;
}

function run(path: string, ci: boolean): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], {
    env: { PATH: path, CI: String(ci) },
    encoding: 'utf8',
    timeout: 30_000,
  });
  return { status, output: stdout + stderr };
}

const present = '#!/bin/sh\n';

test('nothing is said when all servers are there', (t) => {
  const path = createPath(t, { 'redis-server': present, memcached: present, git: present });
  t.deepEqual(run(path, true), { status: 0, output: '' });
});

test('what is missing and cannot be installed is named, and fails only where CI=true', (t) => {
  const path = createPath(t, { memcached: present });
  const laptop = run(path, false);
  t.is(laptop.status, 0);
  t.regex(laptop.output, /not found in the PATH: redis-server, git\. Tests that need them/);
  t.regex(laptop.output, /sudo apt-get install redis-server git\n/);
  t.is(run(path, true).status, 1);
});

test('what is missing is installed where we may', (t) => {
  const isRoot = process.getuid?.() === 0;
  const path = createPath(t, { 'redis-server': present, git: present });
  writeFileSync(
    join(path, 'apt-get'),
    `#!/bin/sh
case "$*" in *install*) echo "#!/bin/sh" > ${path}/memcached; /bin/chmod +x ${path}/memcached;; esac
`,
    { mode: 0o755 },
  );
  const { status, output } = run(path, true);
  t.is(status, isRoot ? 0 : 1, output);
  t.regex(output, isRoot ? /installing memcached \.\.\.\n$/ : /not found in the PATH: memcached/);
});
