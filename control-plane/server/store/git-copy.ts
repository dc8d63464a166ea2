// A bare copy of one branch or tag on disk. Its tip is the last commit that was fetched with its files.
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Git } from './git-command.ts';
import { resolveObject } from './git-tree.ts';

export const tipRef = 'refs/ratelane/tip';
export const localTimeoutMs = 30_000;
/** Separates the name of a copy from the suffix of its replacement. */
const freshMark = '.fresh-';

export class GitCopy {
  readonly folder: string;
  readonly git: Git;
  readonly #openGit: (repository: string) => Git;

  constructor(folder: string, openGit: (repository: string) => Git) {
    this.folder = folder;
    this.git = openGit(folder);
    this.#openGit = openGit;
  }

  exists(): Promise<boolean> {
    return stat(`${this.folder}/HEAD`).then(
      () => true,
      () => false,
    );
  }

  async initialize(signal: AbortSignal): Promise<void> {
    await mkdir(dirname(this.folder), { recursive: true, mode: 0o700 });
    const args = ['init', '--quiet', '--bare', '--template=', '--', this.folder];
    await this.git.run(args, { timeoutMs: localTimeoutMs, signal });
  }

  /** The commit of the tip; undefined before the first. */
  tip(signal?: AbortSignal): Promise<string | undefined> {
    return resolveObject(this.git, `${tipRef}^{commit}`, signal);
  }

  async setTip(commit: string, signal: AbortSignal): Promise<void> {
    await this.git.run(['update-ref', tipRef, commit], { timeoutMs: localTimeoutMs, signal });
  }

  /** Names an empty replacement. Processes can share a copy, so each builds one of its own: `id` is unique. */
  toFresh(id: string): GitCopy {
    return new GitCopy(`${this.folder}${freshMark}${id}`, this.#openGit);
  }

  async replaceBy(fresh: GitCopy): Promise<void> {
    await this.remove();
    await rename(fresh.folder, this.folder);
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  /** A killed fetch leaves partial files, and the next fetch starts over. */
  async removePartial(): Promise<void> {
    const objects = join(this.folder, 'objects');
    const names = await readdir(objects, { recursive: true }).catch(() => []);
    for (const name of names) {
      if (/^\.?tmp[_-]/.test(basename(name))) {
        await rm(join(objects, name), { recursive: true, force: true });
      }
    }
  }

  /** Removes replacements that no process can still be building. One is as large as the repository. */
  async removeAbandoned(longestBuildMs: number): Promise<void> {
    const parent = dirname(this.folder);
    const prefix = `${basename(this.folder)}${freshMark}`;
    for (const name of await readdir(parent)) {
      if (!name.startsWith(prefix)) continue;
      const path = join(parent, name);
      const made = await stat(path).catch(() => undefined);
      if (made === undefined || Date.now() - made.mtimeMs < longestBuildMs) continue;
      await rm(path, { recursive: true, force: true });
    }
  }
}
