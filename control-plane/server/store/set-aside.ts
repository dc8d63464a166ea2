// Sets unreadable files aside: each is renamed, so that its content can be inspected while a new file is written in its
// place, and is listed by `status` for as long as it exists.
import { readdir, rename } from 'node:fs/promises';
import { basename, join } from 'node:path';

export const asideSuffix = '.unreadable';
/** The folders of the state directory with files of this control plane. */
const folders = ['', 'directory-history'];
const maxListed = 20;

/** Returns the end of a log line. A file that cannot be renamed stays in its place. */
export async function setAside(path: string): Promise<string> {
  const aside = `${path}${asideSuffix}`;
  try {
    await rename(path, aside);
    return `it is kept as ${basename(aside)}`;
  } catch {
    return 'it cannot be renamed';
  }
}

/** The paths of files that were set aside in a state directory. Never rejects. */
export async function listSetAside(stateDirectory: string): Promise<string[]> {
  const found: string[] = [];
  for (const folder of folders) {
    const path = join(stateDirectory, folder);
    const names = await readdir(path).catch(() => []);
    found.push(
      ...names.filter((name) => name.endsWith(asideSuffix)).map((name) => join(path, name)),
    );
  }
  return found.sort().slice(0, maxListed);
}
