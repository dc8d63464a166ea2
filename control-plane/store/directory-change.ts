// Writes a change into a directory, one writer at a time (directory-lock.ts). The store decides whether the
// change is allowed.
import { lstat, mkdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Problem } from '../../shared/rules/problem/problem.ts';
import { problemOf } from '../../shared/rules/problem/problem.ts';
import { codeOf } from '../../shared/rules-directory.ts';
import { stageFile, writeFileAtomically } from './atomic-file.ts';
import { type DirectoryLock, takeLock } from './directory-lock.ts';
import type { StoredFile } from './revision.ts';
import type { Change } from './store.ts';

const newFileMode = 0o644;
const lostText = 'this writer stood still, and another one took its lock';

/** `first` is put before all of the change. Returns why nothing was written, 'lost' when that is because
 * another writer took the lock away; no problems when everything was. */
export type ApplyChange = (change: Change, first?: StoredFile) => Promise<Problem[] | 'lost'>;

/** Runs `task` under the write lock; undefined when others held it for `lockWaitMs`. Rejects with an
 * AppError `store` when the directory cannot be written to. */
export async function writeChange<Result>(
  directory: string,
  lockWaitMs: number,
  task: (apply: ApplyChange) => Promise<Result>,
): Promise<Result | undefined> {
  const lock = await takeLock(directory, lockWaitMs).catch((error: unknown) => {
    throw unwritable(directory, error);
  });
  if (lock === undefined) return undefined;
  try {
    return await task((change, first) => apply(directory, lock, change, first));
  } finally {
    await lock.release();
  }
}

async function apply(
  directory: string,
  lock: DirectoryLock,
  change: Change,
  first: StoredFile | undefined,
): Promise<Problem[] | 'lost'> {
  const problems = await findObstacles(directory, change);
  if (problems.length > 0) return problems;
  const done: string[] = [];
  try {
    const staged: StagedPut[] = [];
    for (const file of first ? [first, ...change.put] : change.put) {
      staged.push(await stagePut(directory, file, lock));
    }
    for (const { path, commit } of staged) {
      await commit();
      if (path !== first?.path) done.push(path);
    }
    for (const path of change.delete) {
      await remove(join(directory, path), lock);
      done.push(path);
    }
  } catch (error) {
    if (await lock.isHeld()) throw unwritable(directory, error, done);
    if (done.length === 0) return 'lost';
    throw unwritable(directory, new Error(lostText), done);
  }
  return [];
}

/** What lies in the way of a change. */
export async function findObstacles(directory: string, change: Change): Promise<Problem[]> {
  const problems: Problem[] = [];
  for (const { path } of change.put) {
    const link = await findLink(directory, path);
    if (link === undefined) continue;
    const message = `'${link}' is a symbolic link, which is not written through`;
    problems.push(
      problemOf('error', 'unreadable-file', path, message, 'change the files that it leads to'),
    );
  }
  for (const path of change.delete) {
    const found = await lstat(join(directory, path)).catch(() => undefined);
    if (!found?.isDirectory()) continue;
    problems.push(
      problemOf('error', 'unreadable-file', path, 'it is a directory, which is not deleted'),
    );
  }
  return problems;
}

interface StagedPut {
  readonly path: string;
  commit(): Promise<void>;
}

/** Files that are not committed go with the lock. */
async function stagePut(
  directory: string,
  { path, text }: StoredFile,
  lock: DirectoryLock,
): Promise<StagedPut> {
  const target = join(directory, path);
  await mkdir(dirname(target), { recursive: true });
  const mode = await modeOf(target);
  const { commit } = await stageFile(target, text, mode, lock.folder);
  return {
    path,
    commit: () => moveUnder(lock, commit, () => writeFileAtomically(target, text, mode)),
  };
}

/** Into the folder of the lock, which fails for a holder that has lost it. */
async function remove(path: string, lock: DirectoryLock): Promise<void> {
  const moved = join(lock.folder, 'removed');
  const move = async () => {
    await rename(path, moved);
    try {
      await unlink(moved);
    } catch (error) {
      // Somebody has just put a folder in the place of the file.
      await rename(moved, path);
      throw error;
    }
  };
  await moveUnder(lock, move, () => unlink(path));
}

/** Nothing can be moved between the folder of the lock and a folder that is a mount of its own: there the
 * lock can only be checked before. */
async function moveUnder(
  lock: DirectoryLock,
  move: () => Promise<void>,
  workInPlace: () => Promise<void>,
): Promise<void> {
  try {
    await move();
  } catch (error) {
    if (codeOf(error) !== 'EXDEV' || !(await lock.isHeld())) throw error;
    await workInPlace();
  }
}

/** The first part of the path that is a symbolic link, as a path from the directory. */
async function findLink(directory: string, path: string): Promise<string | undefined> {
  const parts = path.split('/');
  for (let length = 1; length <= parts.length; length++) {
    const part = parts.slice(0, length).join('/');
    const found = await lstat(join(directory, part)).catch(() => undefined);
    if (found?.isSymbolicLink()) return part;
  }
  return undefined;
}

/** The mode of the existing file, but readable for us. */
async function modeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ mode }) => (mode & 0o777) | 0o400,
    () => newFileMode,
  );
}

function unwritable(directory: string, error: unknown, done: readonly string[] = []): AppError {
  const extent = done.length === 0 ? 'nothing was written' : `written so far: ${done.join(', ')}`;
  const message = `${directory} cannot be written to: ${errorText(error)}; ${extent}`;
  return new AppError('store', message, { cause: error });
}
