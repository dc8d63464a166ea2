// Fetches a branch or tag into a copy, with as few files as the host allows: only those of the rules' folder that are
// not too large are ever read.
import { AppError } from '../../../shared/errors.ts';
import type { Log } from '../../../shared/log.ts';
import type { GitAddress } from './git-address.ts';
import { GitError, type RunOptions } from './git-command.ts';
import { type GitCopy, localTimeoutMs, tipRef } from './git-copy.ts';

export interface GitFetchDeps {
  /** The folder of the copy, for the log. */
  readonly folder: string;
  readonly address: GitAddress;
  /** The folder of the rules; '' is the whole repository. */
  readonly rulesFolder: string;
  readonly fetchTimeoutMs: number;
  /** Larger files are omitted from the copy if the host supports that: they are never read. */
  readonly maxFileBytes: number;
  readonly log: Log;
}

const remoteName = 'ratelane';
/** The tip of a copy whose files have not all arrived. */
const incompleteRef = 'refs/ratelane/incomplete';
/** Makes git assume that a commit in the copy does not imply its files. */
const knowsNothing = [['fetch.negotiationAlgorithm', 'noop']] as const;
const noFiles = 'blob:none';
const maxListBytes = 64 * 1024 * 1024;

interface FetchCommand {
  /** Refs with their local names, or ids of files. */
  readonly wanted: readonly string[];
  /** What the host omits, as git's `--filter` has it. */
  readonly filter: string | undefined;
  readonly config?: RunOptions['config'];
}

export class GitFetch {
  readonly #deps: GitFetchDeps;
  readonly #noLargeFiles: string;
  /** What the host can omit; the first two are assumed until it refuses. A host that ignores filters omits nothing. */
  #omits: 'other-folders' | 'large-files' | 'nothing';
  #isLogged = false;

  constructor(deps: GitFetchDeps) {
    this.#deps = deps;
    this.#noLargeFiles = `blob:limit=${deps.maxFileBytes + 1}`;
    this.#omits = deps.rulesFolder === '' ? 'large-files' : 'other-folders';
  }

  /** Returns the commit that the ref points to, which is the copy's tip now. */
  async fetchInto(copy: GitCopy, ref: string, signal: AbortSignal): Promise<string> {
    try {
      if (!(await this.#fetchFolder(copy, ref, signal))) await this.#fetchAtOnce(copy, ref, signal);
    } catch (error) {
      await copy.removePartial();
      throw error;
    }
    const commit = await copy.tip(signal);
    if (commit === undefined) throw new AppError('store', `${ref} is not a commit`);
    return commit;
  }

  /** A new copy first fetches the history without files, then the files of the folder: a large repository has many
   * other files. If the second part is interrupted, the first part is kept. Returns false if everything must be fetched
   * at once. */
  async #fetchFolder(copy: GitCopy, ref: string, signal: AbortSignal): Promise<boolean> {
    if (this.#omits !== 'other-folders' || (await copy.tip(signal)) !== undefined) return false;
    try {
      const history = { wanted: [`+${ref}:${incompleteRef}`], filter: noFiles };
      await this.#run(copy, history, signal);
      const wanted = await this.#listMissing(copy, signal);
      const files = { wanted, filter: noFiles, config: knowsNothing };
      if (wanted.length > 0) await this.#run(copy, files, signal);
      await copy.setTip(incompleteRef, signal);
      const local = { timeoutMs: localTimeoutMs, signal };
      await copy.git.run(['update-ref', '-d', incompleteRef], local);
      return true;
    } catch (error) {
      if (!isRefusal(error, /filter|unadvertised|not our ref/i)) throw error;
      this.#omits = 'large-files';
      // A copy with commits only would never fetch files.
      await copy.remove();
      await copy.initialize(signal);
      return false;
    }
  }

  /** The ids of the folder's files in the whole history that the copy does not have. */
  async #listMissing({ git }: GitCopy, signal: AbortSignal): Promise<readonly string[]> {
    const { rulesFolder, fetchTimeoutMs } = this.#deps;
    const list = ['rev-list', '--objects', '--no-object-names', '--missing=print'];
    const range = ['--full-history', incompleteRef, '--', rulesFolder];
    const bounds = { timeoutMs: fetchTimeoutMs, maxBytes: maxListBytes, signal };
    const listed = (await git.run([...list, ...range], bounds)).toString().split('\n');
    return listed.filter((line) => line.startsWith('?')).map((line) => line.slice(1));
  }

  async #fetchAtOnce(copy: GitCopy, ref: string, signal: AbortSignal): Promise<void> {
    const wanted = [`+${ref}:${tipRef}`];
    const filter = this.#omits === 'nothing' ? undefined : this.#noLargeFiles;
    try {
      await this.#run(copy, { wanted, filter }, signal);
    } catch (error) {
      if (filter === undefined || !isRefusal(error, /filter/i)) throw error;
      await this.#run(copy, { wanted, filter: undefined }, signal);
      this.#omits = 'nothing';
      this.#logLargeFiles();
    }
  }

  async #run(copy: GitCopy, command: FetchCommand, signal: AbortSignal): Promise<void> {
    const { wanted, filter, config = [] } = command;
    const { address, fetchTimeoutMs } = this.#deps;
    const options = ['--quiet', '--force', '--no-tags', '--no-write-fetch-head'];
    if (filter !== undefined) options.push(`--filter=${filter}`);
    // Only a fetch may know which files were omitted on purpose: any other command would fetch them. The name of such a
    // remote cannot be a path.
    const remote = `remote.${remoteName}`;
    const omission = [
      [`${remote}.promisor`, 'true'],
      [`${remote}.partialCloneFilter`, filter ?? ''],
    ] as const;
    await copy.git.run(['fetch', ...options, '--stdin', '--', remoteName], {
      input: wanted.map((each) => `${each}\n`).join(''),
      timeoutMs: fetchTimeoutMs,
      timeoutSetting: '--git-fetch-timeout',
      signal,
      isRemote: true,
      onWarnings: (text) => {
        if (text.includes('filtering not recognized')) this.#logLargeFiles();
      },
      config: [
        ...config,
        [`${remote}.url`, address.url],
        ...(filter === undefined ? [] : omission),
      ],
    });
  }

  #logLargeFiles(): void {
    if (this.#isLogged) return;
    this.#isLogged = true;
    const { address, maxFileBytes, folder, log } = this.#deps;
    log.info(
      `The host of ${address.shown} cannot omit large files from a fetch (uploadpack.allowFilter): ` +
        `a file of more than ${maxFileBytes} bytes is refused, and stays in the copy, ${folder}`,
    );
  }
}

/** True when git itself reported an error, rather than being too slow. */
export function isAnswer(error: unknown): error is GitError & { readonly output: string } {
  return error instanceof GitError && error.output !== undefined;
}

function isRefusal(error: unknown, text: RegExp): boolean {
  return isAnswer(error) && text.test(error.output);
}
