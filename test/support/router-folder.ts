// A folder like that of somebody who has installed the router's package, for what its documents show.
import { mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { findFencedBlocks } from './fenced-blocks.ts';

const root = join(import.meta.dirname, '..', '..');

/** Its `ratelane-router` is the sources; the other packages are those of the repository. Whoever makes it removes it. */
export async function createRouterFolder(others: readonly string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'router-'));
  const packages = join(folder, 'node_modules');
  const own = join(packages, 'ratelane-router');
  await mkdir(own, { recursive: true });
  for (const name of ['@types', 'typebox', ...others]) {
    await symlink(join(root, 'node_modules', name), join(packages, name));
  }
  await symlink(join(root, 'shared'), join(own, 'shared'));
  // The entries of the package, in the sources.
  const exports = {
    '.': './shared/router/index.ts',
    './client': './shared/router/client/client.ts',
  };
  const manifest = { name: 'ratelane-router', type: 'module', exports };
  await writeFile(join(own, 'package.json'), JSON.stringify(manifest));
  await writeFile(join(folder, 'package.json'), '{"type": "module"}');
  return folder;
}

/** Writes what a guide shows as files: a line that ends with a path between backticks and a colon names the file of the
 * block below. */
export async function writeFilesOf(guide: string, folder: string): Promise<void> {
  const lines = guide.split('\n');
  for (const { language, text, line } of findFencedBlocks(guide)) {
    if (language !== 'ts' && language !== 'json') continue;
    // Above the fence, with an empty line in between.
    const [, file] = /`([^`]+)`:$/.exec(lines[line - 4] ?? '') ?? [];
    if (file === undefined) throw new Error(`the block at line ${line} has no file`);
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
}
