// The paths of files that the programs read or start: interfaces, pages, and the entries of threads and processes. Only
// this module depends on `npm run build` replacing modules by bundles.
import { extname, join } from 'node:path';

/** True in a build, false in the sources. */
export const isBuilt = extname(import.meta.filename) === '.js';

/** A build has the same folders as the sources: like this module, each bundle is one folder below the root. */
const root = join(import.meta.dirname, '..');

/** `path` is the path in the sources; in a build the same program is JavaScript. */
export function ownPath(path: string): string {
  return join(root, isBuilt ? path.replace(/\.ts$/, '.js') : path);
}
