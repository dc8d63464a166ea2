// Lists the entries of a folder and of those below it, up to a number: who may write there decides how many there are.
import type { Dirent } from 'node:fs';
import { opendir } from 'node:fs/promises';

/** At most so many, in the order in which the file system gives them. Rejects where the folder cannot be read. */
export async function listBelow(folder: string, most: number): Promise<Dirent[]> {
  const found: Dirent[] = [];
  for await (const entry of await opendir(folder, { recursive: true })) {
    found.push(entry);
    if (found.length >= most) break;
  }
  return found;
}
