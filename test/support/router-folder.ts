// A folder like that of somebody who has installed the router's package, for what its documents show.
import { mkdir, mkdtemp, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
