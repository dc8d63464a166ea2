// Where the files are that the programs read or start by their paths: interfaces, pages, and the entries of threads and
// processes. This module alone knows that `npm run build` puts bundles in the place of modules.
import { extname, join } from 'node:path';

/** True in a build, false in the sources. */
export const isBuilt = extname(import.meta.filename) === '.js';

/** A build has the folders of the sources: this code is one folder below its root, as this module is. */
const root = join(import.meta.dirname, '..');

/** `path` is that of the sources; a program in a build is JavaScript. */
export function ownPath(path: string): string {
  return join(root, isBuilt ? path.replace(/\.ts$/, '.js') : path);
}
