// A bare copy of one branch or tag of a remote repository, on disk, rebuilt when damaged. git-tree.ts
// reads its commits.
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { AppError } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { GitAddress } from './git-address.ts';
import { type Git, GitError } from './git-command.ts';
import { pushTo } from './git-push.ts';
import { resolveObject } from './git-tree.ts';

export interface GitMirror {
  /** Reads fetched commits. */
  readonly git: Git;
  /** Fetches, and returns the newest commit's id. Rejects with an AppError `store`. */
  fetch(signal: AbortSignal): Promise<string>;
  /** The last fetched commit, possibly of an earlier process; undefined before the first. */
  tip(signal?: AbortSignal): Promise<string | undefined>;
  /** Fetches everything into a new copy that replaces the current one. */
  renew(signal: AbortSignal): Promise<string>;
  /** Throws an AppError `bad_request` when the followed ref is known not to be a branch. */
  refuseTag(): void;
  /** Pushes a commit if the remote is still at `parent`. Rejects with an AppError: `bad_request` when the ref is not a
   * branch, otherwise `store`; in the latter case the push may still have arrived. */
  push(commit: string, parent: string, signal: AbortSignal): Promise<void>;
}

export interface GitMirrorDeps {
  readonly folder: string;
  readonly address: GitAddress;
  /** A branch, or a tag if there is no such branch; a full name beginning with `refs/`; undefined for the
   * remote's default branch. */
  readonly ref: string | undefined;
  /** The folder of the rules; '' is the whole repository. */
  readonly rulesFolder: string;
  /** Time limit of a command that contacts the remote, except a fetch. */
  readonly timeoutMs: number;
  readonly fetchTimeoutMs: number;
  /** Larger files are omitted from the copy if the host supports that: they are never read. */
  readonly maxFileBytes: number;
  readonly log: Log;
  openGit(repository: string): Git;
}

interface RemoteRef {
  /** The full name, such as `refs/heads/main`. */
  readonly name: string;
  /** The id of the commit, or of the tag that points to it. */
  readonly id: string;
}

const remoteName = 'ratelane';
const tipRef = 'refs/ratelane/tip';
const tipCommit = `${tipRef}^{commit}`;
/** The tip of a copy whose files have not all arrived. */
const incompleteRef = 'refs/ratelane/incomplete';
/** Makes git assume that a commit in the copy does not imply its files. */
const knowsNothing = [['fetch.negotiationAlgorithm', 'noop']] as const;
const maxListBytes = 64 * 1024 * 1024;
const localTimeoutMs = 30_000;
/** Separates the name of a copy from the suffix of its replacement. Processes can share a copy, so each builds its
 * replacement under its own name. */
const freshMark = '.fresh-';

export function createGitMirror(deps: GitMirrorDeps): GitMirror {
  const { folder, rulesFolder, address, timeoutMs, fetchTimeoutMs, maxFileBytes, log, openGit } =
    deps;
  const git = openGit(folder);
  /** The ref at the last contact with the remote. */
  let remoteRef: RemoteRef | undefined;
  /** The filter for a partial fetch; undefined if the host rejects filters. Hosts that ignore filters send
   * everything. */
  let filter: string | undefined = `blob:limit=${maxFileBytes + 1}`;
  let isFilterLogged = false;
  /** Whether the host cannot send the files of one folder separately. */
  let sendsAtOnce = false;

  async function initialize(repository: string, target: Git, signal: AbortSignal): Promise<void> {
    await mkdir(dirname(repository), { recursive: true, mode: 0o700 });
    const args = ['init', '--quiet', '--bare', '--template=', '--', repository];
    await target.run(args, { timeoutMs: localTimeoutMs, signal });
  }

  /** The default branch may change, and a branch may replace a tag: only the remote knows which ref to follow now. */
  async function askRemote(signal: AbortSignal): Promise<RemoteRef> {
    const { ref } = deps;
    const candidates =
      ref === undefined
        ? ['HEAD']
        : ref.startsWith('refs/')
          ? [ref]
          : [`refs/heads/${ref}`, `refs/tags/${ref}`];
    const args = ['ls-remote', '--symref', '--', address.url, ...candidates];
    const output = await git.run(args, { timeoutMs, signal, isRemote: true });
    const lines = output.toString().split('\n');
    const findFor = (name: string, kind: RegExp) =>
      lines.find((line) => kind.test(line) && line.endsWith(`\t${name}`))?.split('\t')[0];
    for (const name of candidates) {
      const id = findFor(name, /^[0-9a-f]/);
      if (id === undefined) continue;
      const target = ref === undefined ? findFor(name, /^ref: /)?.slice('ref: '.length) : undefined;
      remoteRef = { name: target ?? name, id };
      return remoteRef;
    }
    const what = ref === undefined ? 'no branch yet' : `no branch or tag '${ref}'`;
    throw new AppError('store', `the repository has ${what}`);
  }

  /** Returns the commit that the ref points to. */
  async function fetchInto(
    target: Git,
    repository: string,
    ref: string,
    signal: AbortSignal,
  ): Promise<string> {
    try {
      if (!(await fetchFolder(target, repository, ref, signal))) {
        const wanted = [`+${ref}:${tipRef}`];
        await runFetch(target, wanted, signal, filter).catch(async (error: unknown) => {
          if (filter === undefined || !isAnswer(error) || !/filter/i.test(error.output))
            throw error;
          await runFetch(target, wanted, signal, undefined);
          filter = undefined;
          logLargeFiles();
        });
      }
    } catch (error) {
      await removePartial(repository);
      throw error;
    }
    const commit = await resolveObject(target, tipCommit, signal);
    if (commit === undefined) throw new AppError('store', `${ref} is not a commit`);
    return commit;
  }

  /** A new copy first fetches the history without files, then the files of the folder: a large repository has many
   * other files. If the second part is interrupted, the first part is kept. Returns false if everything must be fetched
   * at once. */
  async function fetchFolder(
    target: Git,
    repository: string,
    ref: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    if (rulesFolder === '' || filter === undefined || sendsAtOnce) return false;
    if ((await resolveObject(target, tipCommit, signal)) !== undefined) return false;
    try {
      await runFetch(target, [`+${ref}:${incompleteRef}`], signal, 'blob:none');
      const list = ['rev-list', '--objects', '--no-object-names', '--missing=print'];
      const range = ['--full-history', incompleteRef, '--', rulesFolder];
      const bounds = { timeoutMs: fetchTimeoutMs, maxBytes: maxListBytes, signal };
      const listed = (await target.run([...list, ...range], bounds)).toString().split('\n');
      const missing = listed.filter((line) => line.startsWith('?')).map((line) => line.slice(1));
      if (missing.length > 0) await runFetch(target, missing, signal, 'blob:none', knowsNothing);
      const local = { timeoutMs: localTimeoutMs, signal };
      await target.run(['update-ref', tipRef, incompleteRef], local);
      await target.run(['update-ref', '-d', incompleteRef], local);
      return true;
    } catch (error) {
      const isRefused = isAnswer(error) && /filter|unadvertised|not our ref/i.test(error.output);
      if (!isRefused) throw error;
      // A copy with commits only would never fetch files.
      sendsAtOnce = true;
      await rm(repository, { recursive: true, force: true });
      await initialize(repository, target, signal);
      return false;
    }
  }

  /** `wanted`: refs with their local names, or ids of files. */
  function runFetch(
    target: Git,
    wanted: readonly string[],
    signal: AbortSignal,
    filter: string | undefined,
    config: readonly (readonly [string, string])[] = [],
  ): Promise<Buffer> {
    const options = ['--quiet', '--force', '--no-tags', '--no-write-fetch-head'];
    if (filter !== undefined) options.push(`--filter=${filter}`);
    return target.run(['fetch', ...options, '--stdin', '--', remoteName], {
      input: wanted.map((each) => `${each}\n`).join(''),
      timeoutMs: fetchTimeoutMs,
      timeoutSetting: '--git-fetch-timeout',
      signal,
      isRemote: true,
      onWarnings(text) {
        if (text.includes('filtering not recognized')) logLargeFiles();
      },
      // Only a fetch may know which files were omitted on purpose: any other command would fetch them. The name of such
      // a remote cannot be a path.
      config: [
        ...config,
        [`remote.${remoteName}.url`, address.url],
        ...(filter === undefined
          ? []
          : ([
              [`remote.${remoteName}.promisor`, 'true'],
              [`remote.${remoteName}.partialCloneFilter`, filter],
            ] as const)),
      ],
    });
  }

  function logLargeFiles(): void {
    if (isFilterLogged) return;
    isFilterLogged = true;
    log.info(
      `The host of ${address.shown} cannot leave large files out of what it sends (uploadpack.allowFilter): ` +
        `a file of more than ${maxFileBytes} bytes is refused, and stays in the copy, ${folder}`,
    );
  }

  function refuseTag(): void {
    if (remoteRef === undefined || remoteRef.name.startsWith('refs/heads/')) return;
    const text = `${remoteRef.name} is not a branch, so nothing is written to it`;
    throw new AppError('bad_request', text);
  }

  async function readTip(signal?: AbortSignal): Promise<string | undefined> {
    if (!(await isThere(folder))) return undefined;
    return resolveObject(git, tipCommit, signal);
  }

  async function renew(signal: AbortSignal): Promise<string> {
    const { name } = remoteRef ?? (await askRemote(signal));
    const fresh = `${folder}${freshMark}${randomUUID()}`;
    try {
      const target = openGit(fresh);
      await initialize(fresh, target, signal);
      const commit = await fetchInto(target, fresh, name, signal);
      await rm(folder, { recursive: true, force: true });
      await rename(fresh, folder);
      return commit;
    } finally {
      await rm(fresh, { recursive: true, force: true });
    }
  }

  return {
    git,
    renew,
    tip: readTip,
    refuseTag,
    async fetch(signal) {
      if (!(await isThere(folder))) await initialize(folder, git, signal);
      if (remoteRef === undefined) {
        // An earlier process may have been killed during a fetch or a rebuild.
        await removePartial(folder);
        await removeHalfMade(folder, fetchTimeoutMs + 2 * localTimeoutMs);
      }
      const { name, id } = await askRemote(signal);
      // If the copy is unreadable, it has no tip; the next fetch reports the reason.
      const tip = await readTip(signal).catch(() => undefined);
      if (tip === id) return tip;
      try {
        return await fetchInto(git, folder, name, signal);
      } catch (error) {
        if (!isAnswer(error)) throw error;
        // Rejects when the remote fails, or no longer has the branch.
        const again = await askRemote(signal);
        return fetchInto(git, folder, again.name, signal).catch((reason: unknown) => {
          if (!isAnswer(reason)) throw reason;
          // The remote answers, so this copy is damaged, or locked by a dead process.
          return renew(signal);
        });
      }
    },
    async push(commit, parent, signal) {
      const { name: ref } = remoteRef ?? (await askRemote(signal));
      refuseTag();
      const { url } = address;
      await pushTo(git, { url, commit, ref, before: parent, timeoutMs, localTimeoutMs, signal });
      const args = ['update-ref', tipRef, commit];
      await git.run(args, { timeoutMs: localTimeoutMs, signal });
    },
  };
}

/** True when git itself reported an error, rather than being too slow. */
function isAnswer(error: unknown): error is GitError & { readonly output: string } {
  return error instanceof GitError && error.output !== undefined;
}

/** A killed fetch leaves partial files, and the next fetch starts over. */
async function removePartial(repository: string): Promise<void> {
  const objects = join(repository, 'objects');
  const names = await readdir(objects, { recursive: true }).catch(() => []);
  for (const name of names) {
    if (/^\.?tmp[_-]/.test(basename(name))) {
      await rm(join(objects, name), { recursive: true, force: true });
    }
  }
}

/** An abandoned replacement is as large as the repository. */
async function removeHalfMade(repository: string, longestMs: number): Promise<void> {
  const parent = dirname(repository);
  const prefix = `${basename(repository)}${freshMark}`;
  for (const name of await readdir(parent)) {
    if (!name.startsWith(prefix)) continue;
    const path = join(parent, name);
    const made = await stat(path).catch(() => undefined);
    if (made === undefined || Date.now() - made.mtimeMs < longestMs) continue;
    await rm(path, { recursive: true, force: true });
  }
}

async function isThere(folder: string): Promise<boolean> {
  return stat(`${folder}/HEAD`).then(
    () => true,
    () => false,
  );
}
