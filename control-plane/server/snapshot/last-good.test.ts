import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createRecordedLog } from '../../../test/support/recorded-log.ts';
import { createTemporaryFolder } from '../../../test/support/temporary-folder.ts';
import type { Revision } from '../store/revision.ts';
import { LastGood } from './last-good.ts';

function revisionOf(id: string): Revision {
  return { id, atMs: 0, author: undefined, message: undefined, files: [], problems: [] };
}

test('a revision that comes while an earlier one fails to be written is kept', async (t) => {
  const folder = createTemporaryFolder(t);
  const stateDirectory = join(folder, 'state');
  // A file at the path of the folder: no user can write into it, not even root.
  writeFileSync(stateDirectory, '');
  const recorded = createRecordedLog();
  const log = {
    ...recorded,
    warning(message: string) {
      recorded.warning(message);
      rmSync(stateDirectory, { force: true });
    },
  };
  const lastGood = new LastGood({ stateDirectory, store: 'here', log });
  lastGood.store(revisionOf('first'));
  // The write begins with this turn, and its failure needs a later one.
  await Promise.resolve();
  lastGood.store(revisionOf('second'));
  await lastGood.settled();
  t.is(recorded.lines.length, 1);
  t.regex(recorded.lines[0] ?? '', /^warning Revision first cannot be stored for the next start: /);
  t.is((await lastGood.read())?.id, 'second');
});

test('a revision that could not be written is written when it comes again', async (t) => {
  const folder = createTemporaryFolder(t);
  const stateDirectory = join(folder, 'state');
  writeFileSync(stateDirectory, '');
  const log = createRecordedLog();
  const lastGood = new LastGood({ stateDirectory, store: 'here', log });
  lastGood.store(revisionOf('first'));
  await lastGood.settled();
  t.is(log.lines.length, 1);
  rmSync(stateDirectory);
  lastGood.store(revisionOf('first'));
  await lastGood.settled();
  t.is((await lastGood.read())?.id, 'first');
});

test('a revision that is kept already is not written again, also after a start', async (t) => {
  const stateDirectory = createTemporaryFolder(t);
  const file = join(stateDirectory, 'last-good.revision.json');
  const log = createRecordedLog();
  const first = new LastGood({ stateDirectory, store: 'here', log });
  first.store(revisionOf('first'));
  await first.settled();
  const second = new LastGood({ stateDirectory, store: 'here', log });
  await second.read();
  for (const lastGood of [first, second]) {
    rmSync(file, { force: true });
    lastGood.store(revisionOf('first'));
    await lastGood.settled();
    t.false(existsSync(file));
  }
  second.store(revisionOf('second'));
  await second.settled();
  t.true(existsSync(file));
});
