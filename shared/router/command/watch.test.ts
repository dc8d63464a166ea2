import { existsSync } from 'node:fs';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'ava';
import { eventually } from '../../../test/support/eventually.ts';
import { StartError } from '../errors.ts';
import { isWatched, startWatching } from './watch.ts';

test('modules are watched, and neither packages nor what an application writes beside its code', (t) => {
  for (const name of ['index.ts', 'controllers/notes/[id].mts', 'a\\b.js', 'view.tsx']) {
    t.true(isWatched(name), name);
  }
  const others = [
    'notes.db',
    'notes.db-wal',
    'server.log',
    'uploads/a.png',
    'data.json',
    'index.ts~',
  ];
  const hidden = ['.git/index.js', 'node_modules/ws/index.js', 'app\\.cache\\a.js'];
  for (const name of [...others, ...hidden]) t.false(isWatched(name), name);
});

test('a program that cannot be started is reported, and one that cannot be restarted is tried at the next change', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'watched-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const program = join(folder, 'node');
  const started = join(folder, 'started');
  const script = `require('fs').writeFileSync(${JSON.stringify(started)}, '')`;
  const told: string[] = [];
  const command = [program, '-e', script] as const;
  const watch = () => startWatching(folder, command, (text) => told.push(text));
  await t.throwsAsync(watch(), {
    instanceOf: StartError,
    message: `cannot start ${program}: spawn ${program} ENOENT`,
  });
  await symlink(process.execPath, program);
  const watching = await watch();
  t.teardown(() => watching.stop());
  await eventually('it has come so far', () => existsSync(started));
  await rm(program);
  await rm(started);
  await writeFile(join(folder, 'index.ts'), '');
  await eventually('it has come so far', () => told.length > 0);
  t.deepEqual(told, [
    `cannot start ${program}: spawn ${program} ENOENT; the next change tries it again`,
  ]);
  await symlink(process.execPath, program);
  await writeFile(join(folder, 'index.ts'), '// changed');
  await eventually('it has come so far', () => existsSync(started));
  t.is(told.length, 1);
});
