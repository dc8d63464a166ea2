// Finds folders and files that import each other in a circle of any length. Type imports count as well: readers of one
// of them have to read the others.
import { dirname, join } from 'node:path/posix';

/** `texts` are the modules below one folder, by their relative paths. A file beside the folders counts as a folder of
 * its own. Returns one line for each import that is part of a circle, or leads from one circle to another. */
export function findFolderCircles(texts: ReadonlyMap<string, string>): string[] {
  return findCircles(texts, (file) => file.split('/', 1)[0] ?? '');
}

/** Circles of files, whatever their folders. */
export function findFileCircles(texts: ReadonlyMap<string, string>): string[] {
  return findCircles(texts, (file) => file);
}

/** The number of layers of the folders: the longest chain of imports, for folders without circles. */
export function countFloors(texts: ReadonlyMap<string, string>): number {
  const imports = [...texts].flatMap(([file, text]) =>
    listImports(file, text, (each) => each.split('/', 1)[0] ?? ''),
  );
  const floors = new Map<string, number>();
  const floorOf = (folder: string): number => {
    const below = imports.filter(({ from }) => from === folder).map(({ to }) => to);
    const floor = floors.get(folder) ?? 1 + Math.max(0, ...[...new Set(below)].map(floorOf));
    floors.set(folder, floor);
    return floor;
  };
  return Math.max(0, ...imports.map(({ from }) => floorOf(from)));
}

interface Import {
  readonly from: string;
  readonly to: string;
  readonly file: string;
  readonly target: string;
}

/** `toNode` returns the node that a file belongs to. */
function findCircles(
  texts: ReadonlyMap<string, string>,
  toNode: (file: string) => string,
): string[] {
  let left = [...texts].flatMap(([file, text]) => listImports(file, text, toNode));
  for (;;) {
    const importing = new Set(left.map(({ from }) => from));
    const imported = new Set(left.map(({ to }) => to));
    const rest = left.filter(({ from, to }) => imported.has(from) && importing.has(to));
    if (rest.length === left.length) break;
    left = rest;
  }
  return left.map(({ file, target }) => `${file} imports ${target}`);
}

function listImports(file: string, text: string, toNode: (file: string) => string): Import[] {
  const from = toNode(file);
  return [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.{1,2}\/[^']+)'/g)].flatMap(
    ([, path = '']) => {
      const target = join(dirname(file), path);
      const to = toNode(target);
      return target.startsWith('../') || to === from ? [] : [{ from, to, file, target }];
    },
  );
}
