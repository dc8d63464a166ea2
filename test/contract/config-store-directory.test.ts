// The configuration store contract for a directory.
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { createDirectoryStore } from '../../control-plane/server/store/directory-store.ts';
import { systemClock } from '../../shared/clock.ts';
import { createRecordedLog } from '../support/recorded-log.ts';
import { createRulesFolder } from '../support/rules-folder.ts';
import { testConfigStore } from './config-store.ts';

testConfigStore(test, {
  name: 'directory',
  writers: 1,
  async prepare(t) {
    const folder = createRulesFolder(t);
    const directory = join(folder.path, 'rules');
    mkdirSync(directory);
    let states = 0;
    return {
      open({ bounds, state = `state-${states++}` } = {}) {
        const log = createRecordedLog();
        const store = createDirectoryStore({
          options: { directory, stateDirectory: join(folder.path, state) },
          log,
          clock: systemClock,
          ...(bounds && { bounds }),
        });
        t.teardown(() => store.close());
        return { store, log };
      },
      async put(files) {
        for (const [path, text] of Object.entries(files)) {
          if (text === undefined) rmSync(join(directory, path));
          else folder.write(`rules/${path}`, text as string);
        }
      },
      hide: () => renameSync(directory, `${directory}.hidden`),
      show: () => renameSync(`${directory}.hidden`, directory),
    };
  },
});
