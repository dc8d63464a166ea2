// Finds the symbolic links on the path to a directory: a swap of one leads to another directory, and only
// a watch on the link's folder sees it.
import { readlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { codeOf } from '../../shared/rules-directory.ts';

const maxLinks = 40;

/**
 * For each folder to watch, the names whose replacement leads elsewhere: links, the first missing part,
 * and the directory itself. `path` is absolute. Never rejects.
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
    // A missing or unreadable part ends the path.
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
