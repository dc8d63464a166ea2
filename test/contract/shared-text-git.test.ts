// The contracts of shared texts, and of the record in them, for a Git repository.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createGitSharedText } from '../../control-plane/server/store/git-shared-text.ts';
import { createGitRepository, gitEnvironment } from '../support/git-repository.ts';
import { toGitStoreOptions } from '../support/git-store.ts';
import { testRecordKeeper } from './record-keeper.ts';
import { testRecordKills } from './record-kills.ts';
import { type SharedTextKind, testSharedText } from './shared-text.ts';

const kind: SharedTextKind = {
  name: 'git',
  prepare(t) {
    const repository = createGitRepository(t);
    let states = 0;
    function open() {
      const text = createGitSharedText(
        {
          options: toGitStoreOptions(repository, {
            ref: 'main',
            stateDirectory: join(repository.folder, `state-${states++}`),
          }),
          environment: gitEnvironment,
        },
        'text',
      );
      t.teardown(text.close);
      return text;
    }
    return {
      open,
      openReadOnly() {
        const hook = join(repository.path, 'hooks', 'pre-receive');
        writeFileSync(hook, '#!/bin/sh\necho "no right to push" >&2\nexit 1\n', { mode: 0o755 });
        return open();
      },
      hide: repository.hide,
      show: repository.show,
    };
  },
};

testSharedText(test, kind);
testRecordKeeper(test, kind);
testRecordKills(test, kind);
