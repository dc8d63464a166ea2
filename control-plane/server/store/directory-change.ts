// Writes a change into a directory. The store decides whether the change is allowed, and writes one at a time.
import { lstat, mkdir, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { toCountText } from '../../../shared/count-text.ts';
import { AppError, errorText } from '../../../shared/errors.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import { type StagedFile, stageFile, syncFolder } from './atomic-file.ts';
import type { StoredFile } from './revision.ts';
import type { Change } from './store.ts';

const newFileMode = 0o644;

/** How many files are written or read at the same time: a disk syncs several in the time of one. */
const filesAtOnce = 8;

/** Returns why nothing was written; no problems when everything was, which then survives a power cut. Rejects with an
 * AppError `store` when the directory cannot be written to. */
export async function writeChange(directory: string, change: Change): Promise<Problem[]> {
  const problems = await findObstacles(directory, change);
  if (problems.length > 0) return problems;
  const staged = new Map<string, StagedFile>();
  const done: string[] = [];
  try {
    await makeFolders(directory, change);
    await forEach(change.put, async (file) => {
      staged.set(file.path, await stagePut(directory, file));
    });
    for (const { path } of change.put) {
      await staged.get(path)?.commit();
      done.push(path);
    }
    for (const path of change.delete) {
      await unlink(join(directory, path));
      done.push(path);
    }
    await forEach(foldersOf(directory, done), syncFolder);
  } catch (error) {
    for (const file of staged.values()) await file.discard();
    throw unwritable(directory, error, done);
  }
  return [];
}

/** Files and folders that prevent a change. */
export async function findObstacles(directory: string, change: Change): Promise<Problem[]> {
  const problems: Problem[] = [];
  const links = new Links(directory);
  await forEach(change.put, async ({ path }) => {
    const link = await links.findOn(path);
    if (link === undefined) return;
    const message = `'${link}' is a symbolic link, which is not written through`;
    problems.push(
      problemOf('error', 'unreadable-file', path, message, 'change the files that it leads to'),
    );
  });
  await forEach(change.delete, async (path) => {
    const found = await lstat(join(directory, path)).catch(() => undefined);
    if (!found?.isDirectory()) return;
    problems.push(
      problemOf('error', 'unreadable-file', path, 'it is a directory, which is not deleted'),
    );
  });
  return problems;
}

async function stagePut(directory: string, { path, text }: StoredFile): Promise<StagedFile> {
  const target = join(directory, path);
  return stageFile(target, text, await modeOf(target));
}

async function makeFolders(directory: string, { put }: Change): Promise<void> {
  const folders = new Set(put.map(({ path }) => dirname(join(directory, path))));
  await forEach(folders, (folder) => mkdir(folder, { recursive: true }));
}

/** The folders that contain the paths, and their parents, in which they may be new. */
function foldersOf(directory: string, paths: readonly string[]): ReadonlySet<string> {
  const folders = new Set<string>();
  for (const path of paths) {
    for (let above = dirname(path); !folders.has(join(directory, above)); above = dirname(above)) {
      folders.add(join(directory, above));
    }
  }
  return folders;
}

/** Calls `act` for a few items at the same time. After a failure it starts no more, waits for those that run, and rejects. */
async function forEach<Item>(
  items: Iterable<Item>,
  act: (item: Item) => Promise<unknown>,
): Promise<void> {
  // The loop of a failed call closes it, and so ends the other loops too.
  const queue = (function* () {
    yield* items;
  })();
  const ended = await Promise.allSettled(
    Array.from({ length: filesAtOnce }, async () => {
      for (const item of queue) await act(item);
    }),
  );
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
}

/** Finds symbolic links in a directory. Reads each path once. */
class Links {
  readonly #directory: string;
  readonly #known = new Map<string, Promise<boolean>>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** The first part of the path that is a symbolic link, as a path from the directory. */
  async findOn(path: string): Promise<string | undefined> {
    const parts = path.split('/');
    for (let length = 1; length <= parts.length; length++) {
      const part = parts.slice(0, length).join('/');
      const known = this.#known.get(part) ?? this.#isLink(part);
      this.#known.set(part, known);
      if (await known) return part;
    }
    return undefined;
  }

  async #isLink(part: string): Promise<boolean> {
    const found = await lstat(join(this.#directory, part)).catch(() => undefined);
    return found?.isSymbolicLink() === true;
  }
}

/** The mode of the existing file, with read permission for this process. */
async function modeOf(path: string): Promise<number> {
  return stat(path).then(
    ({ mode }) => (mode & 0o777) | 0o400,
    () => newFileMode,
  );
}

function unwritable(directory: string, error: unknown, done: readonly string[]): AppError {
  const extent = done.length === 0 ? 'nothing was written' : `written so far: ${toNames(done)}`;
  const message = `${directory} cannot be written to: ${errorText(error)}; ${extent}`;
  return new AppError('store', message, { cause: error });
}

const mostNamed = 20;

function toNames(paths: readonly string[]): string {
  const more = paths.length - mostNamed;
  const first = paths.slice(0, mostNamed).join(', ');
  return more > 0 ? `${first} and ${toCountText(more, 'more file')}` : first;
}
