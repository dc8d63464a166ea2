// The configuration store contract for Git: a whole repository, and a folder of a larger repository.
import { join } from 'node:path';
import test from 'ava';
import { createGitRepository } from '../support/git-repository.ts';
import { openGitStore } from '../support/git-store.ts';
import { testConfigStore } from './config-store.ts';

for (const folder of ['', 'deploy/limits']) {
  testConfigStore(test, {
    name: folder === '' ? 'git' : 'git folder',
    writers: 2,
    async prepare(t) {
      const repository = createGitRepository(t);
      let states = 0;
      return {
        open({ bounds, state = `state-${states++}` } = {}) {
          const options = {
            ref: folder === '' ? undefined : 'main',
            folder,
            pollMs: 50,
            stateDirectory: join(repository.folder, state),
          };
          return openGitStore(t, repository, options, bounds && { bounds });
        },
        async put(files) {
          const below = Object.entries(files).map(([path, text]) => [join(folder, path), text]);
          repository.push(Object.fromEntries(below));
        },
        hide: repository.hide,
        show: repository.show,
      };
    },
  });
}
