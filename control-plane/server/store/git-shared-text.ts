// A text that control planes share in a ref of the repository, beside the branches: a commit without a parent whose
// only file is the text. Pushes replace it, each with a lease on the previous commit.
import { createHash } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { AppError } from '../../../shared/errors.ts';
import { createGit, GitError } from './git-command.ts';
import { pushTo } from './git-push.ts';
import { type GitStoreDeps, readGitAddress } from './git-store.ts';
import { resolveObject } from './git-tree.ts';
import { asideSuffix } from './set-aside.ts';
import { maxSharedTextBytes, type SharedText, type VersionedText } from './shared-text.ts';

const fileName = 'text.json';
const localRef = 'refs/ratelane/newest';
const localTimeoutMs = 30_000;
/** Each write leaves three objects in the copy, so the copy is recreated after this many writes. */
const writesOfCopy = 500;

/** The ref is `refs/ratelane/<name>/<hash of branch and folder>`. Calls must not overlap. */
export function createGitSharedText(
  { options, environment, readCredentials }: Omit<GitStoreDeps, 'log' | 'clock'>,
  name: string,
): SharedText {
  const { ref, folder, timeoutMs, committer } = options;
  const address = readGitAddress(options);
  const digest = createHash('sha256')
    .update(JSON.stringify([ref, folder]))
    .digest('hex');
  const remoteRef = `refs/ratelane/${name}/${digest.slice(0, 12)}`;
  const repository = resolve(options.stateDirectory, `git-${name}`);
  const git = createGit({
    repository,
    address,
    environment,
    readCredentials: async () => (await readCredentials?.()) ?? address.credentials,
  });
  const closed = new AbortController();
  const { signal } = closed;
  let writes = writesOfCopy;
  let known: VersionedText | undefined;

  async function run(args: readonly string[], input = '', extra = {}): Promise<string> {
    const given = { timeoutMs: localTimeoutMs, maxBytes: maxSharedTextBytes, input, signal };
    return (await git.run(args, { ...given, environment: extra })).toString();
  }

  async function runAtRemote(args: readonly string[]): Promise<string> {
    return (await git.run(args, { timeoutMs, signal, isRemote: true })).toString();
  }

  async function renewCopy(): Promise<void> {
    if (writes < writesOfCopy) return;
    await rm(repository, { recursive: true, force: true });
    await mkdir(join(repository, '..'), { recursive: true, mode: 0o700 });
    await run(['init', '--quiet', '--bare', '--template=', '--', repository]);
    writes = 0;
  }

  /** The requested name is a pattern, which also matches longer names that end with it. */
  async function findTip(): Promise<string | undefined> {
    const output = await runAtRemote(['ls-remote', '--', address.url, remoteRef]);
    return output
      .split('\n')
      .map((line) => line.split('\t'))
      .find(([, name]) => name === remoteRef)?.[0];
  }

  /** '' if it is not in the format that control planes write. */
  async function readText(version: string): Promise<string> {
    const blob = await resolveObject(git, `${version}:${fileName}`, signal);
    if (blob === undefined) return '';
    const bytes = Number(await run(['cat-file', '-s', blob]));
    return bytes > maxSharedTextBytes ? '' : run(['cat-file', 'blob', blob]);
  }

  async function makeCommit(text: string): Promise<string> {
    const blob = (await run(['hash-object', '-w', '--no-filters', '--stdin'], text)).trim();
    const tree = (await run(['mktree'], `100644 blob ${blob}\t${fileName}\n`)).trim();
    const commit = await run(['commit-tree', tree, '-m', name], '', {
      GIT_AUTHOR_NAME: committer.name,
      GIT_AUTHOR_EMAIL: committer.email,
      GIT_COMMITTER_NAME: committer.name,
      GIT_COMMITTER_EMAIL: committer.email,
    });
    return commit.trim();
  }

  return {
    description: `${remoteRef} of ${address.shown}`,
    async read() {
      await renewCopy();
      const tip = await findTip();
      if (tip === undefined) return undefined;
      if (tip === known?.version) return known;
      const refspec = `+${remoteRef}:${localRef}`;
      const fetch = [
        'fetch',
        '--quiet',
        '--force',
        '--no-tags',
        '--no-write-fetch-head',
        '--depth=1',
      ];
      await runAtRemote([...fetch, '--', address.url, refspec]);
      writes++;
      // The ref may be newer than the commit found above.
      const version = await resolveObject(git, localRef, signal);
      if (version === undefined) throw new AppError('store', `${remoteRef} is gone again`);
      known = { version, text: await readText(version) };
      return known;
    },
    async swap(before, text) {
      await renewCopy();
      const commit = await makeCommit(text);
      writes++;
      const { url } = address;
      try {
        await pushTo(git, {
          url,
          commit,
          ref: remoteRef,
          before,
          timeoutMs,
          localTimeoutMs,
          signal,
        });
      } catch (error) {
        if (!(error instanceof GitError)) throw error;
        // Messages of git and servers differ, and an answer may get lost: only the remote knows the outcome.
        const tip = await findTip();
        if (tip !== commit) {
          if (tip !== before) return { kind: 'stale' };
          if (error.output === undefined) throw error;
          return { kind: 'denied', reason: error.message };
        }
      }
      known = { version: commit, text };
      return { kind: 'written', version: commit };
    },
    async setAside(version) {
      const aside = `${remoteRef}${asideSuffix}`;
      const lease = `--force-with-lease=${remoteRef}:${version}`;
      const push = ['push', '--quiet', '--porcelain', '--no-verify', '--atomic', lease];
      const refs = [`+${version}:${aside}`, `:${remoteRef}`];
      try {
        await runAtRemote([...push, '--', address.url, ...refs]);
      } catch (error) {
        if ((await findTip()) === version) throw error;
      }
      known = undefined;
      return aside;
    },
    close: () => closed.abort(),
  };
}
