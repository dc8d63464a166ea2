// Files that are there as a whole or not at all, whenever the machine stops.
import { randomUUID } from 'node:crypto';
import { open, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/** A file that is written but does not have its name yet. */
export interface StagedFile {
  /** Gives it its name, in place of the file that has it. */
  commit(): Promise<void>;
  /** Removes it; for one that was committed this does nothing. */
  discard(): Promise<void>;
}

/** The name under which it waits begins with a dot. The folder must exist. */
export async function stageFile(path: string, text: string, mode: number): Promise<StagedFile> {
  const folder = dirname(path);
  const staged = join(folder, `.${basename(path).slice(0, 100)}.${randomUUID()}.tmp`);
  const discard = () => rm(staged, { force: true });
  try {
    const handle = await open(staged, 'wx', mode);
    try {
      // The mode given to open is cut by the process's mask.
      await handle.chmod(mode);
      await handle.writeFile(text);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    await discard();
    throw error;
  }
  return {
    async commit() {
      await rename(staged, path);
      await syncFolder(folder);
    },
    discard,
  };
}

export async function writeFileAtomically(path: string, text: string, mode: number): Promise<void> {
  const staged = await stageFile(path, text, mode);
  try {
    await staged.commit();
  } catch (error) {
    await staged.discard();
    throw error;
  }
}

const stagedName = /^\..{1,100}\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$/;

/** Removes what processes that were killed have left under their passing names, in `folder` and all folders
 * in it. Younger ones than `minAgeMs` may be written right now. Best effort: never rejects. */
export async function removeStagedFiles(folder: string, minAgeMs: number): Promise<void> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  for (const name of names) {
    if (!stagedName.test(basename(name))) continue;
    const path = join(folder, name);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined || isYounger(found.mtimeMs, minAgeMs)) continue;
    await rm(path, { force: true }).catch(() => {});
  }
}

/** A time in the future is that of a clock that was set back since. */
export function isYounger(mtimeMs: number, ageMs: number): boolean {
  return Math.abs(Date.now() - mtimeMs) < ageMs;
}

/** A name outlives a power cut only when its folder has been written as well. */
async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
