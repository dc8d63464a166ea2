// A folder like that of a user who has installed the router's package, for the examples in its documents.
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findFencedBlocks } from './fenced-blocks.ts';
import type { Owner } from './owner.ts';
import { createTemporaryFolder } from './temporary-folder.ts';

const root = join(import.meta.dirname, '..', '..');

/** Its `ratelane-router` is the sources; the other packages are those of the repository. */
export function createRouterFolder(t: Owner, others: readonly string[]): string {
  const folder = createTemporaryFolder(t);
  const packages = join(folder, 'node_modules');
  const own = join(packages, 'ratelane-router');
  mkdirSync(own, { recursive: true });
  for (const name of ['@types', 'typebox', ...others])
    symlinkSync(join(root, 'node_modules', name), join(packages, name));
  symlinkSync(join(root, 'shared'), join(own, 'shared'));
  // The entries of the package, in the sources.
  const exports = {
    '.': './shared/router/index.ts',
    './client': './shared/router/client/client.ts',
  };
  const manifest = { name: 'ratelane-router', type: 'module', exports };
  writeFileSync(join(own, 'package.json'), JSON.stringify(manifest));
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  return folder;
}

/** Writes the files that a guide shows: a line that ends with a path between backticks and a colon names the file of
 * the following block. */
export function writeFilesOf(guide: string, folder: string): void {
  const lines = guide.split('\n');
  for (const { language, text, line } of findFencedBlocks(guide)) {
    if (language !== 'ts' && language !== 'json') continue;
    // Above the fence, with an empty line in between.
    const [, file] = /`([^`]+)`:$/.exec(lines[line - 4] ?? '') ?? [];
    if (file === undefined) throw new Error(`the block at line ${line} has no file`);
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    writeFileSync(join(folder, file), text);
  }
}
