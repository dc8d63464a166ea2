// The lock that writers of a directory hold, one at a time, on one machine or on several that share it.
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, readdir, rename, rm, rmdir, stat, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../shared/rules-directory.ts';
import { toStagedName } from './atomic-file.ts';

/**
 * A lock is the folder `.ratelane.lock` with one folder in it, named by a random token of its holder.
 *
 * - It is taken by a rename of a prepared folder to `.ratelane.lock`, which fails as long as that has
 *   anything in it: of several, one succeeds.
 * - One whose holder is dead, or stands still, is taken away by removing the folder with the token, with
 *   what is in it. The name is that of the holder who was judged, so the lock of the next one cannot be hit.
 * - A holder that wakes up after that finds out when it commits: what it commits lies in its folder, and a
 *   commit is a rename out of there, which fails when the folder is gone. There is no moment between a check
 *   and the commit in which it could stand still.
 *
 * Only the time of the file system is compared, so the clocks of the machines do not matter.
 */
export interface DirectoryLock {
  /** The folder of the holder, for files that it is going to commit. */
  readonly folder: string;
  /** False when another writer has taken the lock away. */
  isHeld(): Promise<boolean>;
  /** Does nothing to the lock of another. */
  release(): Promise<void>;
}

const lockName = '.ratelane.lock';
const pauseMs = 25;
/** A holder that has done nothing in its folder for this long is dead or stands still. */
export const staleMs = 60_000;

/** Undefined when others held it for `waitMs`, which is far below a minute. Rejects with the file system's
 * error. */
export async function takeLock(
  directory: string,
  waitMs: number,
): Promise<DirectoryLock | undefined> {
  const path = join(directory, lockName);
  const prepared = join(directory, toStagedName('ratelane.lock'));
  const token = randomUUID();
  const startMs = performance.now();
  try {
    const madeAtMs = await prepare(directory, [prepared, join(prepared, token)]);
    for (;;) {
      if (await renameToFree(prepared, path)) return createLock(path, token);
      const waitedMs = performance.now() - startMs;
      await removeStale(path, madeAtMs + waitedMs);
      if (waitedMs > waitMs) return undefined;
      await sleep(pauseMs);
    }
  } finally {
    await rm(prepared, { force: true, recursive: true });
  }
}

/** Makes the folders, so that whoever may write in the directory may take the lock away. Returns the time of
 * the file system. */
async function prepare(directory: string, folders: readonly string[]): Promise<number> {
  const mode = (await stat(directory)).mode & 0o2777;
  for (const folder of folders) {
    await mkdir(folder);
    // The umask reduces the mode given to mkdir.
    await chmod(folder, mode);
  }
  return (await stat(folders.at(-1) ?? directory)).mtimeMs;
}

/** False when the lock is held. */
async function renameToFree(prepared: string, path: string): Promise<boolean> {
  try {
    await rename(prepared, path);
    return true;
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(codeOf(error))) return false;
    throw error;
  }
}

async function removeStale(path: string, nowMs: number): Promise<void> {
  try {
    for (const token of await readdir(path)) {
      const folder = join(path, token);
      if (await isStale(folder, nowMs)) await rm(folder, { force: true, recursive: true });
    }
  } catch (error) {
    const code = codeOf(error);
    // A file is what an earlier version left behind; a folder is not removed by this.
    if (code === 'ENOTDIR' && (await isStale(path, nowMs))) await unlink(path).catch(() => {});
    // Released meanwhile, or its holder woke up and put something in.
    else if (!['ENOTDIR', 'ENOENT', 'ENOTEMPTY'].includes(code)) throw error;
  }
}

/** A time in the future means that the clock was set back. */
async function isStale(path: string, nowMs: number): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && Math.abs(nowMs - found.mtimeMs) >= staleMs;
}

function createLock(path: string, token: string): DirectoryLock {
  const folder = join(path, token);
  return {
    folder,
    isHeld: () =>
      stat(folder).then(
        () => true,
        () => false,
      ),
    async release() {
      await rm(folder, { force: true, recursive: true });
      // Not empty when the next one has it.
      await rmdir(path).catch(() => {});
    },
  };
}
