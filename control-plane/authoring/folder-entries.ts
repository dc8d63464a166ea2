// Lists the entries of a folder and its subfolders, up to a limit: users who can write there decide how many there are.
import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';

/** At most `most` entries, in the order of the file system. Rejects when the folder cannot be read. */
export async function listBelow(folder: string, most: number): Promise<Dirent[]> {
  const found: Dirent[] = [];
  for await (const entry of await opendir(folder, { recursive: true })) {
    found.push(entry);
    if (found.length >= most) break;
  }
  return found;
}
