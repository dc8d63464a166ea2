// Reads rules from one revision of a Git repository, fetched into a temporary bare repository: nothing is checked out,
// so no hook or filter of the repository runs. The store's files run git and read the commit.
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { AppError, errorText } from '../../../shared/errors.ts';
import { isError, problemOf } from '../../../shared/rules/problem/problem.ts';
import { controlPlaneBounds } from '../../../shared/rules-file.ts';
import { stopSignals } from '../../../shared/stop-signals.ts';
import { trimEnd } from '../../../shared/trim-end.ts';
import { policyFile } from '../../authoring/policy/policy-file.ts';
import { nodeGroupsFile } from '../../server/snapshot/node-groups.ts';
import { parseGitAddress } from '../../server/store/git-address.ts';
import { createGit, fetchTimeoutMs, type Git, GitError } from '../../server/store/git-command.ts';
import { readRevisionOf, resolveObject } from '../../server/store/git-tree.ts';
import type { CommandIo } from '../command-frame.ts';
import { startProgress } from '../progress.ts';
import type { RuleInput, RuleInputResult } from './rule-texts.ts';

export interface GitSource {
  /** A URL, or the path of a local repository. */
  readonly url: string;
  /** Any name of a commit that git accepts. */
  readonly revision: string;
  /** The folder to read; '' is the whole repository. */
  readonly folder: string;
}

const localTimeoutMs = 30_000;

/** `path` of each file is its path in the repository. */
export async function readGitInput(
  source: GitSource,
  io: Pick<CommandIo, 'environment' | 'clock' | 'writeError'>,
): Promise<RuleInputResult> {
  // The fetch runs in another repository, where `.` would be that repository.
  const url = existsSync(source.url) ? resolve(source.url) : source.url;
  const parsed = parseGitAddress(url);
  if (!parsed.ok) return { ok: false, message: `--git: ${parsed.reason}` };
  const { address } = parsed;
  const made = await mkdtemp(join(tmpdir(), 'ratelane-git-')).catch((error: Error) => error);
  if (made instanceof Error) {
    const message = `--git needs a temporary directory: ${errorText(made)}; name one in TMPDIR`;
    return { ok: false, message };
  }
  const repository = made;
  const git = createGit({
    repository,
    address,
    environment: io.environment,
    readCredentials: async () => address.credentials,
  });
  // Git has its own process group, so an interrupt of this process does not reach it.
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort(new AppError('store', 'interrupted'));
  for (const signal of stopSignals) process.on(signal, interrupt);
  const fetch = async (...refs: string[]) => {
    const args = ['fetch', '--quiet', '--no-tags', '--', address.url, ...refs];
    const { signal } = interrupted;
    await git.run(args, { timeoutMs: fetchTimeoutMs, isRemote: true, signal });
  };
  const stopProgress = startProgress(io, () => `${address.shown} is fetched`);
  try {
    await git.run(['init', '--quiet', '--bare', '--template='], { timeoutMs: localTimeoutMs });
    const names = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];
    await fetch(`+HEAD:${headRef}`, ...names);
    return { ok: true, input: await readInput(git, source, fetch) };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return { ok: false, message: `${address.shown}: ${error.message}` };
  } finally {
    stopProgress();
    // If this fails, the system removes the rest.
    await rm(repository, { recursive: true, force: true }).catch(() => {});
    for (const signal of stopSignals) process.off(signal, interrupt);
  }
}

const headRef = 'refs/ratelane/head';

/** Rejects with an AppError when the revision or the folder does not exist. */
async function readInput(
  git: Git,
  { revision, folder }: GitSource,
  fetch: (ref: string) => Promise<void>,
): Promise<RuleInput> {
  const args = ['update-ref', '--no-deref', 'HEAD', headRef];
  await git.run(args, { timeoutMs: localTimeoutMs });
  const commit = (await findCommit(git, revision)) ?? (await fetchCommit(git, revision, fetch));
  if (commit === undefined) throw new AppError('store', `there is no revision '${revision}'`);
  const below = trimEnd(folder.replace(/^(?:\.?\/)+|^\.$/, ''), '/');
  const read = await readRevisionOf(git, commit, {
    folder: below,
    bounds: controlPlaneBounds,
    isLeftOut: () => false,
    signal: undefined,
  });
  const toPath = (path: string) => (below === '' ? path : `${below}/${path}`);
  const files = read.files.map(({ path, text }) => ({ path: toPath(path), text }));
  const problems = read.problems.map((problem) => ({ ...problem, file: toPath(problem.file) }));
  if (files.length === 0 && !problems.some(isError)) {
    problems.push(
      problemOf('error', 'no-rules-file', toPath('.'), 'no file named *.yaml or *.yml'),
    );
  }
  return {
    files,
    problems,
    nodeGroupsPath: toPath(nodeGroupsFile),
    policyPath: toPath(policyFile),
    commit,
  };
}

/** Undefined when no branch or tag contains it. */
async function findCommit(git: Git, revision: string): Promise<string | undefined> {
  try {
    return await resolveObject(git, `${revision}^{commit}`);
  } catch (error) {
    // Git has its own error messages for some expressions that name nothing.
    if (error instanceof GitError) return undefined;
    throw error;
  }
}

/** Fetches a commit outside all branches, or a ref such as that of a pull request. */
async function fetchCommit(
  git: Git,
  revision: string,
  fetch: (ref: string) => Promise<void>,
): Promise<string | undefined> {
  if (!/^[\w./-]+$/.test(revision) || revision.startsWith('-')) return undefined;
  try {
    await fetch(revision);
  } catch (error) {
    // The remote has answered before, so the revision is missing.
    if (error instanceof GitError) return undefined;
    throw error;
  }
  return findCommit(git, 'FETCH_HEAD');
}
