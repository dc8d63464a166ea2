// Writes files atomically: complete or not at all, even if the machine crashes.
import { randomUUID } from 'node:crypto';
import { open, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { defaultBounds } from '../../../shared/rules-file.ts';
import { listBelow } from '../../authoring/folder-entries.ts';

/** A file written under a temporary name. */
export interface StagedFile {
  /** Renames the file, replacing any file of the final name. Survives a power cut only when its folder is synced too. */
  commit(): Promise<void>;
  /** Removes the file; does nothing after a commit. */
  discard(): Promise<void>;
}

/** Each part is written before the next one is generated. */
type Parts = Iterable<string | Uint8Array>;

/** The temporary name begins with a dot. The file is in the final file's folder, which must exist. */
export async function stageFile(
  path: string,
  text: string | Parts,
  mode: number,
): Promise<StagedFile> {
  const folder = dirname(path);
  const staged = join(folder, toStagedName(basename(path)));
  const discard = () => rm(staged, { force: true });
  try {
    const handle = await open(staged, 'wx', mode);
    try {
      // The umask reduces the mode given to open.
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
    commit: () => rename(staged, path),
    discard,
  };
}

export async function writeFileAtomically(
  path: string,
  text: string | Parts,
  mode: number,
): Promise<void> {
  const staged = await stageFile(path, text, mode);
  try {
    await staged.commit();
    await syncFolder(dirname(path));
  } catch (error) {
    await staged.discard();
    throw error;
  }
}

/** The name of a temporary file or folder, which `removeStagedFiles` recognizes. */
export function toStagedName(name: string): string {
  return `.${name.slice(0, 100)}.${randomUUID()}.tmp`;
}

const stagedName = /^\..{1,100}\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$/;

/** Removes temporary files and folders of killed processes in `folder` and its subfolders. Those younger than
 * `minAgeMs` stay: another process may be writing them. Best effort: reads at most `most` entries, and never
 * rejects. */
export async function removeStagedFiles(
  folder: string,
  minAgeMs: number,
  most = defaultBounds.entries,
): Promise<void> {
  const entries = await listBelow(folder, most).catch(() => []);
  for (const { name, parentPath } of entries) {
    if (!stagedName.test(name)) continue;
    const path = join(parentPath, name);
    const found = await stat(path).catch(() => undefined);
    if (found === undefined || isYounger(found.mtimeMs, minAgeMs)) continue;
    await rm(path, { force: true, recursive: true }).catch(() => {});
  }
}

/** A time in the future means that the clock was set back. */
export function isYounger(mtimeMs: number, ageMs: number): boolean {
  return Math.abs(Date.now() - mtimeMs) < ageMs;
}

/** Makes renames, new files and removals in the folder survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
