// Writes a change into a directory. The store decides whether the change is allowed, and writes one at a time.
import { lstat, mkdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import { type StagedFile, stageFile } from './atomic-file.ts';
import type { StoredFile } from './revision.ts';
import type { Change } from './store.ts';

const newFileMode = 0o644;

/** Returns why nothing was written; no problems when everything was. Rejects with an AppError `store` when the
 * directory is not writable. */
export async function writeChange(directory: string, change: Change): Promise<Problem[]> {
  const problems = await findObstacles(directory, change);
  if (problems.length > 0) return problems;
  const staged: { readonly path: string; readonly file: StagedFile }[] = [];
  const done: string[] = [];
  try {
    for (const each of change.put) {
      staged.push({ path: each.path, file: await stagePut(directory, each) });
    }
    for (const { path, file } of staged) {
      await file.commit();
      done.push(path);
    }
    for (const path of change.delete) {
      await unlink(join(directory, path));
      done.push(path);
    }
  } catch (error) {
    for (const { file } of staged) await file.discard();
    throw unwritable(directory, error, done);
  }
  return [];
}

/** Files and folders that prevent a change. */
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

async function stagePut(directory: string, { path, text }: StoredFile): Promise<StagedFile> {
  const target = join(directory, path);
  await mkdir(dirname(target), { recursive: true });
  return stageFile(target, text, await modeOf(target));
}

/** The first symbolic link among the parts of the path, as a path from the directory. */
async function findLink(directory: string, path: string): Promise<string | undefined> {
  const parts = path.split('/');
  for (let length = 1; length <= parts.length; length++) {
    const part = parts.slice(0, length).join('/');
    const found = await lstat(join(directory, part)).catch(() => undefined);
    if (found?.isSymbolicLink()) return part;
  }
  return undefined;
}

/** The mode of the existing file, with read permission for this process. */
async function modeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ mode }) => (mode & 0o777) | 0o400,
    () => newFileMode,
  );
}

function unwritable(directory: string, error: unknown, done: readonly string[]): AppError {
  const extent = done.length === 0 ? 'nothing was written' : `written so far: ${done.join(', ')}`;
  const message = `${directory} cannot be written to: ${errorText(error)}; ${extent}`;
  return new AppError('store', message, { cause: error });
}
