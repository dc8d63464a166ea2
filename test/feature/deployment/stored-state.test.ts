// Tests state that an earlier control plane left, during a rollout and after it, in files written by two earlier
// versions (test/fixtures/kept, by the format of their record): this version continues with it. After a downgrade, when
// a newer version has written the state, it keeps the rules in force.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import type { StatusJson } from '../../../control-plane/server/admin/status-report.ts';
import { createControlPlaneInProcess } from '../../support/control-plane-in-process.ts';
import { eventually } from '../../support/eventually.ts';
import { gitEnvironment } from '../../support/git-repository.ts';
import { connectStreamWorker } from '../../support/stream-worker.ts';
import { createTemporaryFolder } from '../../support/temporary-folder.ts';

type Files = Readonly<Record<string, string>>;
/** `rules` of Git is a stream of `git fast-export`. */
interface Stored {
  readonly rules: Files | string;
  readonly state: Files;
}
type StoreKind = 'directory' | 'git';

const stores: readonly StoreKind[] = ['directory', 'git'];
const states = ['running', 'paused', 'aborted', 'held-back'] as const;
const fixtures = join(import.meta.dirname, '..', '..', 'fixtures', 'kept');
const newer = 99;

function write(folder: string, files: Files): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
}

/** `change` is applied to the text of the fixture. */
function restore(t: ExecutionContext, path: string, change = (text: string) => text) {
  const folder = createTemporaryFolder(t);
  const [, storeKind] = path.split('/');
  const store = storeKind === 'git' ? folder : join(folder, 'rules');
  const text = readFileSync(join(fixtures, `${path}.json`), 'utf8').replaceAll('{{store}}', store);
  const { rules, state }: Stored = JSON.parse(change(text));
  write(join(folder, 'state'), state);
  if (typeof rules !== 'string') write(store, rules);
  else {
    const remote = join(folder, 'remote.git');
    const git = (args: readonly string[], input: string) =>
      execFileSync('git', args, { cwd: folder, input, env: gitEnvironment, stdio: 'pipe' });
    git(['init', '--quiet', '--bare', '--initial-branch=main', remote], '');
    git(['-C', remote, 'fast-import', '--quiet'], rules);
  }
  const source: Record<string, string> =
    storeKind === 'git'
      ? { RATELANE_GIT: `file://${join(folder, 'remote.git')}`, RATELANE_GIT_POLL: '1s' }
      : { RATELANE_CONFIG_DIR: store };
  return { folder, store, stateDirectory: join(folder, 'state'), source };
}

async function serve(
  t: ExecutionContext,
  { stateDirectory, source }: Pick<ReturnType<typeof restore>, 'stateDirectory' | 'source'>,
  more: Readonly<Record<string, string>> = { RATELANE_ROLLOUT: 'canary=10%,hold=1h' },
) {
  const plane = await createControlPlaneInProcess(t, {
    flags: [],
    env: { ...source, ...more },
    stateDirectory,
  });
  await plane.start();
  const workers = ['a', 'b', 'c'].map((id) =>
    connectStreamWorker(t, { address: plane.xdsAddress, id }),
  );
  return {
    output: plane.output,
    stop: plane.stop,
    resume: () =>
      plane.fetch('/rollouts', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ action: 'resume', reason: 'they are gone' }),
      }),
    status: async (): Promise<StatusJson> => (await plane.fetch('/status')).body,
    having: (text: string) => workers.filter((worker) => worker.has(text)).length,
    everReported: (text: string) =>
      workers.filter(({ notified }) => notified.some((each) => each.includes(text))).length,
  };
}

for (const format of [2, 3]) {
  for (const storeKind of stores) {
    test(`upgrade, record of format ${format}, ${storeKind}: a running rollout continues, with as many workers`, async (t) => {
      const stored = restore(t, `format-${format}/${storeKind}/running`);
      const { having, resume, status } = await serve(t, stored);
      // A record of format 3 names the workers that had it, which do not reconnect here.
      if (format === 3) {
        await eventually('it pauses', async () => (await status()).rollout?.phase === 'paused');
        t.is(having('second'), 0);
        await eventually('it is resumed', async () => (await resume()).status === 200);
      }
      await eventually('one has the new revision', () => having('second') === 1);
      t.is(having('first'), 2);
      t.is((await status()).rollout?.step, 1);
    });

    test(`upgrade, record of format ${format}, ${storeKind}: a paused rollout stays paused, for the same reason`, async (t) => {
      const { everReported, having, status } = await serve(
        t,
        restore(t, `format-${format}/${storeKind}/paused`),
      );
      await eventually('all have what was in force', () => having('first') === 3);
      await eventually(
        'it is known to be paused',
        async () => (await status()).rollout?.phase === 'paused',
      );
      t.regex((await status()).rollout?.text ?? '', /not on a Friday/);
      t.is(everReported('second'), 0);
    });

    test(`upgrade, record of format ${format}, ${storeKind}: a taken-back revision stays taken back, also after another restart`, async (t) => {
      const stored = restore(t, `format-${format}/${storeKind}/aborted`);
      for (const _ of [1, 2]) {
        const { everReported, having, status, stop } = await serve(t, stored);
        await eventually('all have what was in force', () => having('first') === 3);
        t.is((await status()).verdict, 'taken_back');
        t.regex((await status()).text, /wrong file/);
        t.is(everReported('second'), 0);
        await stop();
      }
    });

    test(`upgrade, record of format ${format}, ${storeKind}: a held-back revision stays held back`, async (t) => {
      const { having, status } = await serve(
        t,
        restore(t, `format-${format}/${storeKind}/held-back`),
      );
      await eventually('all have what was in force', () => having('first') === 3);
      t.is((await status()).verdict, 'held_back');
    });
  }
}

test('upgrade: a record that is only beside the rules of a directory is used, and is removed there for the way back', async (t) => {
  const stored = restore(t, 'format-3/directory/aborted');
  rmSync(join(stored.stateDirectory, 'rollout.json'));
  for (const _ of [1, 2]) {
    const { everReported, having, status, stop } = await serve(t, stored);
    await eventually('all have what was in force', () => having('first') === 3);
    t.regex((await status()).text, /wrong file/);
    t.is(everReported('second'), 0);
    await stop();
    t.deepEqual(
      readdirSync(stored.store).filter((name) => name.startsWith('.ratelane-rollout')),
      [],
    );
  }
});

for (const storeKind of stores) {
  for (const state of states) {
    test(`way back, ${storeKind}, ${state}: with a record of a newer version all workers keep the rules in force, and no step is taken`, async (t) => {
      const stored = restore(t, `format-3/${storeKind}/${state}`, toNewer);
      const before = readRecords(stored, storeKind);
      const empty = { ...stored, stateDirectory: join(stored.folder, 'empty') };
      const isEnough = { RATELANE_ROLLOUT: 'canary=10%,hold=1h' };
      for (const [given, more] of [
        [stored, isEnough],
        [stored, {}],
        ...(storeKind === 'git' ? [[empty, isEnough] as const] : []),
      ] as const) {
        const { everReported, having, output, status, stop } = await serve(t, given, more);
        await eventually('all have what was in force', () => having('first') === 3);
        const { text, verdict, memory } = await status();
        t.is(verdict, 'pending');
        t.regex(text, /newer version \(format 99\).*stays in force$/);
        t.regex(memory.problem ?? '', /format 99/);
        t.true(output().includes('format 99'));
        t.is(everReported('second'), 0);
        await stop();
        t.deepEqual(readRecords(stored, storeKind), before);
      }
    });
  }
}

/** A fixture whose records are of a newer version. */
function toNewer(fixture: string): string {
  const stored: Stored = JSON.parse(fixture.replaceAll(/(\\*"format\\*":)3/g, `$1${newer}`));
  if (typeof stored.rules !== 'string') return JSON.stringify(stored);
  // A stream of Git has the length before each text.
  const rules = stored.rules.replaceAll(
    /data \d+\n(\{"format":99.*)\n/g,
    (_, record: string) => `data ${Buffer.byteLength(record)}\n${record}\n`,
  );
  return JSON.stringify({ ...stored, rules });
}

/** Reads the records that are in use. */
function readRecords(
  { store, stateDirectory }: ReturnType<typeof restore>,
  storeKind: StoreKind,
): unknown {
  if (storeKind === 'git') {
    const args = ['-C', join(store, 'remote.git'), 'for-each-ref', 'refs/ratelane'];
    return execFileSync('git', args, { encoding: 'utf8', env: gitEnvironment });
  }
  return readFileSync(join(stateDirectory, 'rollout.json'), 'utf8');
}

test('way back: a state directory of a newer version is not overwritten until it is removed', async (t) => {
  const stored = restore(t, 'format-3/directory/aborted', toNewer);
  const own = join(stored.stateDirectory, 'rollout.json');
  const before = readFileSync(own, 'utf8');
  for (const more of [{}, { RATELANE_ROLLOUT: 'canary=10%,hold=1h' }]) {
    const { everReported, having, status, stop } = await serve(t, stored, more);
    await eventually('all have what was in force', () => having('first') === 3);
    t.regex((await status()).text, /format 99.*remove .*rollout\.json and restart/);
    t.is(everReported('second'), 0);
    await stop();
    t.is(readFileSync(own, 'utf8'), before);
  }
  rmSync(own);
  const { having } = await serve(t, stored, {});
  await eventually('all have the newest', () => having('second') === 3);
});

test('way back: charts, activity and the last good revision of a newer version are named in the log, and ignored', async (t) => {
  const stored = restore(t, 'format-3/directory/held-back');
  const names = ['last-hour.json', 'activity.json', 'last-good.revision.json'];
  for (const name of names) {
    const path = join(stored.stateDirectory, name);
    writeFileSync(path, readFileSync(path, 'utf8').replace('"format":1', `"format":${newer}`));
  }
  const { having, output } = await serve(t, stored, {});
  await eventually('all have what was in force', () => having('first') === 3);
  for (const name of names) {
    const isNamed = (line: string) => line.includes(name) && line.includes('(format 99)');
    t.true(output().split('\n').some(isNamed), `${name}: ${output()}`);
  }
});
