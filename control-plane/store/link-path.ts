// The symbolic links on the way to a directory: a swap of one of them brings another directory in its
// place, which shows only in the folder that holds the link.
import { readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '../../shared/rules-directory.ts';

const maxLinks = 40;

/**
 * For each folder to watch, the names in it whose replacement leads elsewhere: of links, of the first
 * part that is missing, and of the directory itself. `path` is absolute. Never rejects.
 */
export async function linksOf(path: string): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const found = new Map<string, Set<string>>();
  const note = (folder: string, name: string) => {
    found.set(folder, (found.get(folder) ?? new Set()).add(name));
  };
  note(dirname(path), basename(path));
  let current = '/';
  let rest = toParts(path);
  for (let links = 0; rest.length > 0 && links <= maxLinks; ) {
    const [part = '', ...others] = rest;
    rest = others;
    if (part === '..') {
      current = dirname(current);
      continue;
    }
    const target = await readlink(join(current, part)).catch(codeOf);
    if (target === 'EINVAL') {
      current = join(current, part);
      continue;
    }
    note(current, part);
    // What is missing, or cannot be looked at, ends the way.
    if (/^E[A-Z]+$/.test(target)) break;
    links++;
    if (target.startsWith('/')) current = '/';
    rest = [...toParts(target), ...rest];
  }
  return found;
}

function toParts(path: string): string[] {
  return path.split('/').filter((part) => part !== '' && part !== '.');
}
