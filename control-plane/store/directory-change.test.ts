// One writer at a time in a directory: also where holders of the lock die or stand still, in one process
// and in several.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import test from 'ava';
import { endWithUs } from '../../test/support/end-with-us.ts';
import { createRulesFolder } from '../../test/support/rules-folder.ts';
import { type ApplyChange, writeChange } from './directory-change.ts';

const waitMs = 30_000;
const put = (text: string) => ({ put: [{ path: 'a.yaml', text }], delete: [] });

/** As if its holder had not been heard of since 1970. */
function age(directory: string): void {
  const lock = join(directory, '.ratelane.lock');
  const names = statSync(lock).isDirectory() ? readdirSync(lock) : [];
  for (const path of [lock, ...names.map((name) => join(lock, name))]) utimesSync(path, 1, 1);
}

/** A writer that holds the lock until it is told to go on. */
async function hold(directory: string) {
  const started = Promise.withResolvers<ApplyChange>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const ended = writeChange(directory, waitMs, async (apply) => {
    started.resolve(apply);
    await released;
  });
  const apply = await started.promise;
  return {
    apply,
    async release() {
      release();
      await ended;
    },
  };
}

test('of writers that find a lock left behind at once, one at a time gets it', async (t) => {
  t.timeout(120_000);
  const rounds = 300;
  const writers = 3;
  let roundsWithTwo = 0;
  let entered = 0;
  const run = async (round: number) => {
    const { path } = createRulesFolder(t);
    // A holder of this version, or of one whose lock was a file, has left it.
    const dead = round % 2 === 0 ? await hold(path) : undefined;
    if (dead === undefined) writeFileSync(join(path, '.ratelane.lock'), '');
    age(path);
    let inside = 0;
    let most = 0;
    const write = () =>
      writeChange(path, waitMs, async () => {
        most = Math.max(most, ++inside);
        entered++;
        for (let turn = 0; turn < 20; turn++) await nextTurn();
        inside--;
      });
    await Promise.all(Array.from({ length: writers }, write));
    if (most > 1) roundsWithTwo++;
    await dead?.release();
    t.deepEqual(readdirSync(path), []);
  };
  for (let round = 0; round < rounds; round += 2) {
    await Promise.all([run(round), run(round + 1)]);
  }
  t.is(roundsWithTwo, 0, `two were inside in ${roundsWithTwo} of ${rounds} rounds`);
  t.is(entered, rounds * writers);
});

test('a holder that stood still too long writes nothing, and leaves the lock of the next alone', async (t) => {
  const { path } = createRulesFolder(t);
  const still = await hold(path);
  age(path);
  const next = await hold(path);
  await next.apply(put('next'));
  const outcome = await still.apply(put('still'));
  t.is(readFileSync(join(path, 'a.yaml'), 'utf8'), 'next');
  t.is(outcome, 'lost');
  await still.release();
  const third = await writeChange(path, 100, async () => 'inside');
  t.is(third, undefined, 'the lock is still that of the second');
  await next.release();
  t.is(await writeChange(path, 100, async () => 'inside'), 'inside');
});

const moduleUrl = new URL('./directory-change.ts', import.meta.url).href;

/** Takes the lock again and again, and leaves it behind at times, as a process that is killed does. */
const writerScript = `
  import { open, readdir, rm, stat, utimes } from 'node:fs/promises';
  import { join } from 'node:path';
  import { writeChange } from '${moduleUrl}';
  const [directory, marker] = process.argv.slice(1);
  const lock = join(directory, '.ratelane.lock');
  for (let round = 0; round < 100; round++) {
    const isAbandoned = round % 5 === 4;
    const { promise: isOver, resolve: end } = Promise.withResolvers();
    const written = writeChange(directory, ${waitMs}, async () => {
      // Fails when another one is inside.
      await (await open(marker, 'wx')).close();
      await rm(marker);
      if (!isAbandoned) return;
      const names = (await stat(lock)).isDirectory() ? await readdir(lock) : [];
      for (const path of [lock, ...names.map((name) => join(lock, name))]) await utimes(path, 1, 1);
      end();
      await new Promise(() => {});
    });
    await (isAbandoned ? Promise.race([isOver, written]) : written);
  }
  process.exit();
`;

test('of several processes one at a time is inside, also where some leave the lock behind', async (t) => {
  t.timeout(120_000);
  const { path } = createRulesFolder(t);
  const marker = join(createRulesFolder(t).path, 'inside');
  const runs = Array.from({ length: 3 }, async () => {
    const args = ['--input-type=module', '-e', writerScript, path, marker];
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'] });
    endWithUs(child);
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said += text;
    });
    const [code] = await once(child, 'close');
    return `${code} ${said}`;
  });
  t.deepEqual(await Promise.all(runs), ['0 ', '0 ', '0 ']);
});
