// A Git store on the test's repository, polled once a minute unless the test sets another interval.
import { join } from 'node:path';
import type { ExecutionContext } from 'ava';
import {
  GitStore,
  type GitStoreDeps,
  type GitStoreOptions,
} from '../../control-plane/server/store/git-store.ts';
import { systemClock } from '../../shared/clock.ts';
import { type GitRepository, gitEnvironment } from './git-repository.ts';
import { createRecordedLog } from './recorded-log.ts';

export function toGitStoreOptions(
  repository: GitRepository,
  options: Partial<GitStoreOptions> = {},
): GitStoreOptions {
  return {
    url: repository.url,
    ref: undefined,
    folder: '',
    pollMs: 60_000,
    leastPollMs: 0,
    timeoutMs: 60_000,
    fetchTimeoutMs: 60_000,
    stateDirectory: join(repository.folder, 'state'),
    committer: { name: 'Ratelane', email: 'ratelane@example.test' },
    ...options,
  };
}

/** Closed when the test ends. */
export function openGitStore(
  t: ExecutionContext,
  repository: GitRepository,
  options: Partial<GitStoreOptions> = {},
  deps: Partial<GitStoreDeps> = {},
) {
  const log = createRecordedLog();
  const store = new GitStore({
    options: toGitStoreOptions(repository, options),
    log,
    clock: systemClock,
    environment: gitEnvironment,
    ...deps,
  });
  t.teardown(() => store.close());
  return { store, log };
}
