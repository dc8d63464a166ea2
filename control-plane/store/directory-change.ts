// Writes a change into a directory, one writer at a time. The store decides whether the change is allowed.
import { lstat, mkdir, open, rm, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError, errorText } from '../../shared/errors.ts';
import type { Problem } from '../../shared/rules/problem.ts';
import { problemOf } from '../../shared/rules/problem.ts';
import { codeOf } from '../../shared/rules-directory.ts';
import { isYounger, type StagedFile, stageFile } from './atomic-file.ts';
import type { Change } from './store.ts';

const lockName = '.ratelane.lock';
const lockPauseMs = 25;
/** A lock this old was left by a dead process; work under it is short. */
const staleLockMs = 60_000;
const newFileMode = 0o644;

/** Returns why nothing was written; empty when everything was. */
export type ApplyChange = (change: Change) => Promise<Problem[]>;

/** Runs `task` under the write lock; undefined when others held it for `lockWaitMs`. Rejects with an
 * AppError `store` when the directory cannot be written to. */
export async function writeChange<Result>(
  directory: string,
  lockWaitMs: number,
  task: (apply: ApplyChange) => Promise<Result>,
): Promise<Result | undefined> {
  const lock = join(directory, lockName);
  if (!(await takeLock(lock, lockWaitMs))) return undefined;
  try {
    return await task((change) => apply(directory, change));
  } finally {
    await rm(lock, { force: true });
  }
}

async function takeLock(path: string, waitMs: number): Promise<boolean> {
  const giveUpAtMs = performance.now() + waitMs;
  for (;;) {
    try {
      await (await open(path, 'wx', 0o600)).close();
      return true;
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw unwritable(dirname(path), error);
    }
    const isStale = await stat(path).then(
      ({ mtimeMs }) => !isYounger(mtimeMs, staleLockMs),
      () => false,
    );
    if (isStale) await rm(path, { force: true });
    else if (performance.now() > giveUpAtMs) return false;
    else await sleep(lockPauseMs);
  }
}

async function apply(directory: string, change: Change): Promise<Problem[]> {
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
  if (problems.length > 0) return problems;

  const staged: StagedFile[] = [];
  const done: string[] = [];
  try {
    for (const { path, text } of change.put) {
      const file = join(directory, path);
      await mkdir(dirname(file), { recursive: true });
      staged.push(await stageFile(file, text, await modeOf(file)));
    }
    for (const [index, file] of staged.entries()) {
      await file.commit();
      done.push(change.put[index]?.path ?? '');
    }
    for (const path of change.delete) {
      await unlink(join(directory, path));
      done.push(path);
    }
  } catch (error) {
    await Promise.all(staged.map((file) => file.discard()));
    throw unwritable(directory, error, done);
  }
  return problems;
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
