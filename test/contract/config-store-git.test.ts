// The configuration store contract for Git: a whole repository, and a folder of one with more in it.
import { join } from 'node:path';
import test from 'ava';
import { createGitStore } from '../../control-plane/store/git-store.ts';
import { systemClock } from '../../shared/clock.ts';
import { createGitRepository, gitEnvironment } from '../support/git-repository.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
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
          const log = createRecordedLog();
          const store = createGitStore({
            options: {
              url: repository.url,
              ref: folder === '' ? undefined : 'main',
              folder,
              pollMs: 50,
              leastLookMs: 0,
              timeoutMs: 20_000,
              fetchTimeoutMs: 20_000,
              stateDirectory: join(repository.folder, state),
              committer: { name: 'Ratelane', email: 'ratelane@example.test' },
            },
            log,
            clock: systemClock,
            environment: gitEnvironment,
            ...(bounds && { bounds }),
          });
          t.teardown(() => store.close());
          return { store, log };
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
