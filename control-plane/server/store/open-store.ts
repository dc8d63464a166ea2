// Opens the store that the settings name, and the text that control planes share beside its rules in Git.
import type { Clock } from '../../../shared/clock.ts';
import type { Log } from '../../../shared/log.ts';
import type { Environment } from '../../../shared/settings/setting.ts';
import { trimEnd } from '../../../shared/trim-end.ts';
import { createDirectoryStore } from './directory-store.ts';
import { createCredentialReader, type GitCredentialSettings } from './git-command.ts';
import { createGitSharedText } from './git-shared-text.ts';
import { GitStore, type GitStoreOptions } from './git-store.ts';
import type { SharedText } from './shared-text.ts';
import type { ConfigStore } from './store.ts';

export interface DirectorySettings {
  readonly kind: 'directory';
  readonly directory: string;
}

export interface GitSettings extends GitCredentialSettings {
  readonly kind: 'git';
  readonly url: string;
  /** '' is the repository's default branch. */
  readonly ref: string;
  /** '' is the root. */
  readonly path: string;
  readonly pollMs: number;
  readonly fetchTimeoutMs: number;
}

export interface StoreSettings {
  readonly config: DirectorySettings | GitSettings;
  readonly stateDirectory: string;
}

export interface OpenStoreDeps {
  readonly settings: StoreSettings;
  readonly log: Log;
  readonly clock: Clock;
  /** The process's environment, for git. */
  readonly environment: Environment;
}

const gitTimeoutMs = 60_000;
/** Requests to the admin API cause no more than one poll a second. */
const leastPollMs = 1_000;
/** A step of a rollout waits for this read. */
const gitTextTimeoutMs = 10_000;

export function openStore({ settings, log, clock, environment }: OpenStoreDeps): ConfigStore {
  const { config, stateDirectory } = settings;
  if (config.kind === 'directory') {
    const options = { directory: config.directory, stateDirectory };
    return createDirectoryStore({ options, log, clock });
  }
  return new GitStore({
    options: toGitOptions(config, stateDirectory, gitTimeoutMs),
    log,
    clock,
    environment,
    readCredentials: createCredentialReader(config),
  });
}

/** This call itself reads and writes nothing. */
export function openSharedText(
  { settings, environment }: Pick<OpenStoreDeps, 'settings' | 'environment'>,
  config: GitSettings,
  name: string,
): SharedText {
  const deps = {
    options: toGitOptions(config, settings.stateDirectory, gitTextTimeoutMs),
    environment,
    readCredentials: createCredentialReader(config),
  };
  return createGitSharedText(deps, name);
}

function toGitOptions(
  { url, ref, path, pollMs, fetchTimeoutMs }: GitSettings,
  stateDirectory: string,
  timeoutMs: number,
): GitStoreOptions {
  return {
    url,
    ref: ref === '' ? undefined : ref,
    folder: trimEnd(path, '/'),
    pollMs,
    leastPollMs,
    timeoutMs,
    fetchTimeoutMs,
    stateDirectory,
    committer: { name: 'Ratelane control plane', email: '' },
  };
}
