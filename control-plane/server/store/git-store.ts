// Stores configuration in a Git repository: reads from a mirror on disk, and writes commits that are pushed. Needs git
// 2.31 or newer.
import { createHash } from 'node:crypto';
import { resolve } from 'node:path';
import type { Clock } from '../../../shared/clock.ts';
import { AppError } from '../../../shared/errors.ts';
import { runInSlices } from '../../../shared/in-slices.ts';
import type { Log } from '../../../shared/log.ts';
import { type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import { type Bounds, controlPlaneBounds } from '../../../shared/rules-file.ts';
import { checkingChange, existingPaths } from './file-change.ts';
import {
  type GitAddress,
  type GitCredentials,
  parseGitAddress,
  reasonAgainstFolder,
  reasonAgainstRefName,
} from './git-address.ts';
import { createGit, type Git, GitError, mostProcesses } from './git-command.ts';
import { makeCommit } from './git-commit.ts';
import { GitMirror } from './git-mirror.ts';
import {
  FolderError,
  findTree,
  isAncestor,
  readLog,
  readRevisionOf,
  resolveObject,
} from './git-tree.ts';
import { PollLoop } from './poll-loop.ts';
import { type Revision, type RevisionInfo, toRevisionInfo } from './revision.ts';
import {
  type Author,
  type Change,
  type ConfigStore,
  type Lineage,
  maxLineage,
  type RevisionPosition,
  type StoreStatus,
  shortestRevisionPrefix,
  type WriteOptions,
  type WriteResult,
} from './store.ts';

export interface GitStoreOptions {
  /** Anything that `git clone` accepts, except helper programs (`ext::`). */
  readonly url: string;
  /** A branch, or otherwise a tag; undefined means the remote's default branch. */
  readonly ref: string | undefined;
  /** The folder of the configuration, with `/` between its parts; '' is the whole repository. */
  readonly folder: string;
  readonly pollMs: number;
  /** The least time between two polls of the remote, whoever requests them. */
  readonly leastPollMs: number;
  /** Time limit of a command that contacts the remote, except a fetch. */
  readonly timeoutMs: number;
  readonly fetchTimeoutMs: number;
  /** A directory used only by this control plane, for the mirror. Created if missing. */
  readonly stateDirectory: string;
  /** The committer of all commits, whoever their author is. */
  readonly committer: Author;
}

export interface GitStoreDeps {
  readonly options: GitStoreOptions;
  readonly log: Log;
  readonly clock: Clock;
  /** The process's environment, for git: PATH, HOME, proxies, ssh. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Reads the credentials for http and https; they take precedence over those in the URL. */
  readonly readCredentials?: () => Promise<GitCredentials | undefined>;
  readonly bounds?: Bounds;
}

/** How often a commit is attempted when others push meanwhile. */
const maxAttempts = 3;
const maxHistory = 1_000;
/** The history is read in these sizes: callers ask for any number up to the last one. */
const historySteps = [20, 200, maxHistory];

/** A revision's id is the commit at the tip of the branch or tag, whether or not it touches the folder; the history has
 * the commits that do. A rewritten branch is followed. `write` creates one commit per change, so it is all or nothing
 * for all readers; `expectedRevision` matches while the folder's content is the same. Throws an AppError `cannot_start`
 * for impossible options. */
export class GitStore implements ConfigStore {
  readonly description: string;
  readonly #deps: GitStoreDeps;
  readonly #bounds: Bounds;
  /** The folder of the copy. */
  readonly #repository: string;
  readonly #mirror: GitMirror;
  /** Runs callers' reads: any caller with read access can request some with each call, and the store waits for none of
   * them. */
  readonly #asked: Git;
  readonly #logs: GitLogs;
  readonly #loop: PollLoop;
  /** Ids of the files that the host omitted from the newest copy as too large. */
  #leftOut: ReadonlySet<string> = new Set();

  constructor(deps: GitStoreDeps) {
    const { options, log, clock, environment, bounds = controlPlaneBounds } = deps;
    const { folder, ref, timeoutMs, fetchTimeoutMs, pollMs, leastPollMs } = options;
    const address = readGitAddress(options);
    const identity = createHash('sha256')
      .update(JSON.stringify([address.url, ref]))
      .digest('hex');
    const repository = resolve(options.stateDirectory, `git-${identity.slice(0, 16)}`);
    const readCredentials = async () => (await deps.readCredentials?.()) ?? address.credentials;
    const most = mostProcesses / 2;
    const openGit = (path: string) =>
      createGit({ repository: path, address, environment, readCredentials, most });
    this.#deps = deps;
    this.#bounds = bounds;
    this.#repository = repository;
    this.description = describe(options, address);
    this.#mirror = new GitMirror({
      ...{ folder: repository, address, ref, rulesFolder: folder, timeoutMs, fetchTimeoutMs },
      ...{ maxFileBytes: bounds.fileBytes, log, openGit },
    });
    this.#asked = openGit(repository);
    this.#logs = new GitLogs(this.#asked, folder);
    this.#loop = new PollLoop({
      description: this.description,
      poll: (signal) => this.#poll(signal),
      readLastKnown: (signal) => this.#readLastKnown(signal),
      ...{ pollMs, leastMs: leastPollMs, log, clock },
    });
  }

  read(): Promise<Revision> {
    return this.#loop.read();
  }

  watch(onRevision: (revision: Revision) => void): () => void {
    return this.#loop.watch(onRevision);
  }

  trigger(): Promise<void> {
    return this.#loop.trigger();
  }

  status(): StoreStatus {
    return this.#loop.status();
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  async #poll(signal: AbortSignal): Promise<Revision> {
    const commit = await this.#mirror.fetch(signal);
    try {
      return await this.#readAt(commit, signal, (id) => this.#leftOut.has(id));
    } catch (error) {
      if (!(error instanceof GitError) || error.output === undefined) throw error;
      this.#deps.log.warning(
        `The copy of ${this.description} is fetched again, since a file is too large or the copy is damaged: ${error.message}`,
      );
      const renewed = await this.#mirror.renew(signal);
      const missing = new Set<string>();
      const revision = await this.#readAt(renewed, signal, (id) => missing.add(id).has(id));
      this.#leftOut = missing;
      return revision;
    }
  }

  async #readLastKnown(signal: AbortSignal): Promise<Revision | undefined> {
    try {
      const commit = await this.#mirror.tip(signal);
      return commit === undefined ? undefined : await this.#readAt(commit, signal);
    } catch (error) {
      // The relevant error is the one from reading the remote.
      if (error instanceof AppError) return undefined;
      throw error;
    }
  }

  /** Without `isLeftOut`, as for a revision that was read before, all files missing in the copy count as omitted. */
  async #readAt(
    commit: string,
    signal?: AbortSignal,
    isLeftOut: (id: string) => boolean = () => true,
  ): Promise<Revision> {
    const { seen } = this.#loop;
    if (commit === seen?.id) return seen;
    const { folder } = this.#deps.options;
    const options = { folder, bounds: this.#bounds, isLeftOut, signal };
    return readRevisionOf(this.#mirror.git, commit, options).catch(toInvalid);
  }

  write(change: Change, options: WriteOptions): Promise<WriteResult> {
    return this.#loop.exclusively(async (publish, signal) => {
      for (let again = 0; again < maxAttempts; again++) {
        const result = await this.#attempt(change, options, publish, signal);
        if (result !== 'lost') return result;
      }
      return { ok: false, reason: 'busy' };
    });
  }

  async #attempt(
    change: Change,
    { expectedRevision, author, message }: WriteOptions,
    publish: (revision: Revision) => Revision,
    signal: AbortSignal,
  ): Promise<WriteResult | 'lost'> {
    const before = publish(await this.#poll(signal));
    if (
      expectedRevision !== undefined &&
      !(await this.#isSame(expectedRevision, before.id, signal))
    ) {
      return { ok: false, reason: 'changed_since', current: toRevisionInfo(before) };
    }
    const problems = await this.#check(change, before);
    if (problems.length > 0) return { ok: false, reason: 'refused', problems };
    const { folder, committer } = this.#deps.options;
    const commit = await makeCommit(this.#mirror.git, change, {
      indexFolder: this.#repository,
      parent: before.id,
      folder,
      author,
      committer,
      message,
      signal,
    });
    if (commit === undefined) return { ok: true, revision: before };
    if (!(await this.#pushSurely(commit, before.id, signal))) return 'lost';
    return { ok: true, revision: publish(await this.#readAt(commit, signal)) };
  }

  /** Whether the folder has the same content in both commits. */
  async #isSame(expected: string, current: string, signal: AbortSignal): Promise<boolean> {
    if (expected === current) return true;
    if (!isCommitId(expected)) return false;
    const { folder } = this.#deps.options;
    const { git } = this.#mirror;
    const trees = [
      await findTree(git, expected, { folder, signal }),
      await findTree(git, current, { folder, signal }),
    ];
    return trees[0] !== undefined && trees[0] === trees[1];
  }

  /** False if others have pushed first. Messages of git and servers for that differ, and an answer may get lost: after
   * a failure, the remote is asked for its current commit. */
  async #pushSurely(commit: string, parent: string, signal: AbortSignal): Promise<boolean> {
    try {
      await this.#mirror.push(commit, parent, signal);
      return true;
    } catch (error) {
      if (!(error instanceof GitError)) throw error;
      const tip = await this.#mirror.fetch(signal).catch(() => undefined);
      if (tip === commit) return true;
      if (tip !== undefined && tip !== parent) return false;
      if (tip === parent || error.output !== undefined) throw error;
      throw new AppError('store', `${error.message}; whether the change arrived is not known`);
    }
  }

  async findObstacles(change: Change, before: Revision): Promise<readonly Problem[]> {
    this.#mirror.refuseTag();
    return this.#check(change, before);
  }

  #check(change: Change, before: Revision): Promise<readonly Problem[]> {
    return runInSlices(checkingChange(change, existingPaths(before), this.#bounds));
  }

  async between(older: string, newer: string): Promise<Lineage> {
    const { git } = this.#mirror;
    const isKnown = (await resolveObject(git, `${older}^{commit}`)) !== undefined;
    const range = isKnown ? `${older}..${newer}` : newer;
    // The author of a merge is the user who merged.
    const infos = await readLog(git, ['--first-parent', '-n', String(maxLineage + 1), range]);
    const revisions = infos.slice(0, maxLineage).reverse();
    return { revisions, isCut: !isKnown || infos.length > maxLineage };
  }

  async history(limit: number): Promise<readonly RevisionInfo[]> {
    const tip = await this.#findTip();
    if (tip === undefined || limit <= 0) return [];
    const infos = await this.#logs.read(tip, limit);
    if (infos[0]?.id === tip) return infos.slice(0, limit);
    const { seen } = this.#loop;
    const newest =
      seen?.id === tip ? [toRevisionInfo(seen)] : await readLog(this.#asked, ['-n', '1', tip]);
    return [...newest, ...infos].slice(0, Math.min(limit, maxHistory));
  }

  async locate(id: string, newest: string): Promise<RevisionPosition | undefined> {
    if (!/^[0-9a-f]*$/.test(id) || id.length < shortestRevisionPrefix) return undefined;
    if ((await this.#findTip()) === undefined) return undefined;
    const found = await resolveObject(this.#asked, `${id}^{commit}`);
    if (found === undefined) return undefined;
    return { id: found, isIncluded: await isAncestor(this.#asked, found, newest) };
  }

  async readRevision(id: string): Promise<Revision | undefined> {
    const { seen } = this.#loop;
    if (id === seen?.id) return seen;
    if (!isCommitId(id) || (await this.#findTip()) === undefined) return undefined;
    if ((await resolveObject(this.#asked, `${id}^{commit}`)) === undefined) return undefined;
    const { folder } = this.#deps.options;
    const options = { folder, bounds: this.#bounds, isLeftOut: () => true, signal: undefined };
    return readRevisionOf(this.#asked, id, options).catch(toInvalid);
  }

  async #findTip(): Promise<string | undefined> {
    return this.#loop.seen?.id ?? (await this.#mirror.tip());
  }
}

/** Reading a long history takes git seconds, so the history of the newest commits is read once. */
class GitLogs {
  readonly #git: Git;
  readonly #folder: string;
  readonly #logs = new Map<string, Promise<RevisionInfo[]>>();

  constructor(git: Git, folder: string) {
    this.#git = git;
    this.#folder = folder;
  }

  /** At least `limit` commits up to `tip` that touch the folder, if there are that many. */
  read(tip: string, limit: number): Promise<RevisionInfo[]> {
    const count = historySteps.find((each) => each >= limit) ?? maxHistory;
    const key = `${count} ${tip}`;
    const known = this.#logs.get(key);
    if (known !== undefined) return known;
    const paths = this.#folder === '' ? [] : [this.#folder];
    const log = readLog(this.#git, ['-n', String(count), tip, '--', ...paths]);
    for (const each of this.#logs.keys()) if (!each.endsWith(tip)) this.#logs.delete(each);
    this.#logs.set(key, log);
    log.catch(() => this.#logs.delete(key));
    return log;
  }
}

/** The folder was renamed: the store is reachable, and only this revision is invalid. */
function toInvalid(error: unknown): Revision {
  if (!(error instanceof FolderError)) throw error;
  const message = `the commit has ${error.reason}`;
  const hint = 'put the folder back, or start with another --git-path';
  const problem = problemOf('error', 'missing-folder', '.', message, hint);
  return Object.freeze({ ...error.info, files: [], problems: [problem] });
}

/** Throws an AppError `cannot_start` for impossible options. */
export function readGitAddress({ url, ref, folder }: GitStoreOptions): GitAddress {
  // Git runs in the mirror, where `.` would be the mirror itself.
  const parsed = parseGitAddress(/^\.\.?(?:\/|$)/.test(url) ? resolve(url) : url);
  if (!parsed.ok) {
    // The URL may contain a password, so the message does not quote it.
    throw new AppError('cannot_start', `The Git repository's URL cannot be used: ${parsed.reason}`);
  }
  const refReason = ref === undefined ? undefined : reasonAgainstRefName(ref);
  if (refReason !== undefined) {
    throw new AppError('cannot_start', `'${ref}' cannot be a Git branch or tag: ${refReason}`);
  }
  const folderReason = reasonAgainstFolder(folder);
  if (folderReason !== undefined) {
    const text = `'${folder}' cannot be a folder of a Git repository: ${folderReason}`;
    throw new AppError('cannot_start', text);
  }
  return parsed.address;
}

function describe({ ref, folder }: GitStoreOptions, { shown }: GitAddress): string {
  const branch = ref === undefined ? 'its default branch' : `branch or tag ${ref}`;
  return `${shown} (${branch}${folder === '' ? '' : `, folder ${folder}`})`;
}

function isCommitId(text: string): boolean {
  return /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);
}
