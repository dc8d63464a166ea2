// The contracts of shared texts, and of the record in them, for a directory, and what only a directory can show.
import { mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createDirectorySharedText } from '../../control-plane/store/directory-shared-text.ts';
import { createRulesFolder } from '../support/rules-folder.ts';
import { testRecordKeeper } from './record-keeper.ts';
import { type SharedTextKind, testSharedText } from './shared-text.ts';

const kind: SharedTextKind = {
  name: 'directory',
  prepare(t) {
    const directory = join(createRulesFolder(t).path, 'rules');
    mkdirSync(directory);
    return {
      open: () => createDirectorySharedText(directory, 'text'),
      // Nobody may make files there, whoever runs the test.
      openReadOnly: () => createDirectorySharedText('/sys', 'text'),
      hide: () => renameSync(directory, `${directory}.hidden`),
      show: () => renameSync(`${directory}.hidden`, directory),
    };
  },
};

testSharedText(test, kind);
testRecordKeeper(test, kind);

test('a late write does not become the newest, and older versions are removed', async (t) => {
  const { path } = createRulesFolder(t);
  const text = createDirectorySharedText(path, 'text');
  await text.swap(undefined, 'one');
  await text.swap('1', 'two');
  t.deepEqual(readdirSync(path), ['.text.2.json']);
  // As left by a process that was killed after its write, when others had gone on.
  writeFileSync(join(path, '.text.1.json'), 'late');
  writeFileSync(join(path, '.text.x.json'), 'of somebody else');
  t.is((await text.read())?.text, 'two');
  await text.swap('2', 'three');
  t.deepEqual(readdirSync(path).sort(), ['.text.3.json', '.text.x.json']);
});
