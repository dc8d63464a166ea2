// A copy of one branch or tag of a remote repository: finds out which ref to follow, fetches, pushes, and rebuilds a
// damaged copy. git-tree.ts reads its commits.
import { randomUUID } from 'node:crypto';
import { AppError } from '../../../shared/errors.ts';
import type { Git } from './git-command.ts';
import { GitCopy, localTimeoutMs } from './git-copy.ts';
import { GitFetch, type GitFetchDeps, isAnswer } from './git-fetch.ts';
import { pushTo } from './git-push.ts';

export interface GitMirrorDeps extends GitFetchDeps {
  /** A branch, or a tag if there is no such branch; a full name beginning with `refs/`; undefined for the
   * remote's default branch. */
  readonly ref: string | undefined;
  /** Time limit of a command that contacts the remote, except a fetch. */
  readonly timeoutMs: number;
  openGit(repository: string): Git;
}

interface RemoteRef {
  /** The full name, such as `refs/heads/main`. */
  readonly name: string;
  /** The id of the commit, or of the tag that points to it. */
  readonly id: string;
}

export class GitMirror {
  readonly #deps: GitMirrorDeps;
  readonly #copy: GitCopy;
  readonly #fetch: GitFetch;
  /** The ref at the last contact with the remote. */
  #remoteRef: RemoteRef | undefined;

  constructor(deps: GitMirrorDeps) {
    this.#deps = deps;
    this.#copy = new GitCopy(deps.folder, deps.openGit);
    this.#fetch = new GitFetch(deps);
  }

  /** Reads fetched commits. */
  get git(): Git {
    return this.#copy.git;
  }

  /** The last fetched commit, possibly of an earlier process; undefined before the first. */
  async tip(signal?: AbortSignal): Promise<string | undefined> {
    return (await this.#copy.exists()) ? this.#copy.tip(signal) : undefined;
  }

  /** Fetches, and returns the newest commit's id. Rejects with an AppError `store`. */
  async fetch(signal: AbortSignal): Promise<string> {
    const copy = this.#copy;
    if (!(await copy.exists())) await copy.initialize(signal);
    if (this.#remoteRef === undefined) {
      // An earlier process may have been killed during a fetch or a rebuild.
      await copy.removePartial();
      await copy.removeAbandoned(this.#deps.fetchTimeoutMs + 2 * localTimeoutMs);
    }
    const { name, id } = await this.#askRemote(signal);
    // If the copy is unreadable, it has no tip; the next fetch reports the reason.
    const tip = await copy.tip(signal).catch(() => undefined);
    if (tip === id) return tip;
    try {
      return await this.#fetch.fetchInto(copy, name, signal);
    } catch (error) {
      if (!isAnswer(error)) throw error;
      return this.#fetchAgain(signal);
    }
  }

  async #fetchAgain(signal: AbortSignal): Promise<string> {
    // Rejects when the remote fails, or no longer has the branch.
    const { name } = await this.#askRemote(signal);
    try {
      return await this.#fetch.fetchInto(this.#copy, name, signal);
    } catch (error) {
      if (!isAnswer(error)) throw error;
      // The remote answers, so this copy is damaged, or locked by a dead process.
      return this.renew(signal);
    }
  }

  /** Fetches everything into a new copy that replaces the current one. */
  async renew(signal: AbortSignal): Promise<string> {
    const { name } = this.#remoteRef ?? (await this.#askRemote(signal));
    const fresh = this.#copy.toFresh(randomUUID());
    try {
      await fresh.initialize(signal);
      const commit = await this.#fetch.fetchInto(fresh, name, signal);
      await this.#copy.replaceBy(fresh);
      return commit;
    } finally {
      await fresh.remove();
    }
  }

  /** Throws an AppError `bad_request` when the followed ref is known not to be a branch. */
  refuseTag(): void {
    const { name } = this.#remoteRef ?? {};
    if (name === undefined || name.startsWith('refs/heads/')) return;
    throw new AppError('bad_request', `${name} is not a branch, so nothing is written to it`);
  }

  /** Pushes a commit if the remote is still at `parent`. Rejects with an AppError: `bad_request` when the ref is not a
   * branch, otherwise `store`; in the latter case the push may still have arrived. */
  async push(commit: string, parent: string, signal: AbortSignal): Promise<void> {
    const { name: ref } = this.#remoteRef ?? (await this.#askRemote(signal));
    this.refuseTag();
    const { address, timeoutMs } = this.#deps;
    const push = { url: address.url, commit, ref, before: parent, timeoutMs, localTimeoutMs };
    await pushTo(this.git, { ...push, signal });
    await this.#copy.setTip(commit, signal);
  }

  /** The default branch may change, and a branch may replace a tag: only the remote knows which ref to follow now. */
  async #askRemote(signal: AbortSignal): Promise<RemoteRef> {
    const { ref, address, timeoutMs } = this.#deps;
    const names = toFullNames(ref);
    const args = ['ls-remote', '--symref', '--', address.url, ...names];
    const listed = await this.git.run(args, { timeoutMs, signal, isRemote: true });
    const found = findRef(listed.toString().split('\n'), names);
    if (found === undefined) {
      const what = ref === undefined ? 'no branch yet' : `no branch or tag '${ref}'`;
      throw new AppError('store', `the repository has ${what}`);
    }
    this.#remoteRef = found;
    return found;
  }
}

/** Those that the ref may have, the first of which counts. */
function toFullNames(ref: string | undefined): readonly string[] {
  if (ref === undefined) return ['HEAD'];
  return ref.startsWith('refs/') ? [ref] : [`refs/heads/${ref}`, `refs/tags/${ref}`];
}

/** Reads lines such as `ID<tab>refs/heads/main`, and `ref: refs/heads/main<tab>HEAD` for the default branch. */
function findRef(lines: readonly string[], names: readonly string[]): RemoteRef | undefined {
  for (const name of names) {
    const facts = lines.flatMap((line) => (line.endsWith(`\t${name}`) ? line.split('\t', 1) : []));
    const id = facts.find((fact) => /^[0-9a-f]/.test(fact));
    if (id === undefined) continue;
    const target = facts.find((fact) => fact.startsWith('ref: '))?.slice('ref: '.length);
    return { name: name === 'HEAD' ? (target ?? name) : name, id };
  }
  return undefined;
}
