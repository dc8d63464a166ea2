// `npm run package -- [flags of npm pack]`: the package as its users get it. Its manifest is the one of
// the sources without what is only for them: the carried Node, scripts, tools, and packages that are in the bundle.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bundledPackages } from './bundle.ts';
import { createSbom, isCarriedNode, toReleaseLock } from './sbom.mjs';

const root = join(import.meta.dirname, '..', '..');
const {
  private: _,
  scripts,
  devDependencies,
  overrides,
  ava,
  ...manifest
} = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
for (const name of bundledPackages) delete manifest.dependencies[name];
/** What an installation may share with other packages. Where this package is installed for itself, its shrinkwrap has the
 * versions that were tested. */
const toRanges = (versions) =>
  Object.fromEntries(Object.entries(versions).map(([name, version]) => [name, `^${version}`]));
const optional = Object.entries(manifest.optionalDependencies);
manifest.optionalDependencies = toRanges(
  Object.fromEntries(optional.filter(([name]) => !isCarriedNode(name))),
);
manifest.dependencies = toRanges(manifest.dependencies);
manifest.engines = { node: '>=24' };

const [npm, ...first] = process.env.npm_execpath
  ? [process.execPath, process.env.npm_execpath]
  : ['npm'];
const folder = mkdtempSync(join(tmpdir(), 'ratelane-package-'));
try {
  for (const path of ['dist', 'LICENSE', 'compose/package/ratelane']) {
    cpSync(join(root, path), join(folder, path), { recursive: true });
  }
  cpSync(join(root, 'compose', 'package', 'README.md'), join(folder, 'README.md'));
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  const lock = toReleaseLock(root, manifest, (name) => bundledPackages.includes(name));
  writeFileSync(join(folder, 'npm-shrinkwrap.json'), JSON.stringify(lock));
  const sbom = JSON.parse(createSbom(root, [npm, ...first]));
  writeFileSync(join(folder, 'sbom.cdx.json'), JSON.stringify(sbom));
  const { status } = spawnSync(npm, [...first, 'pack', folder, ...process.argv.slice(2)], {
    stdio: 'inherit',
    cwd: process.env.INIT_CWD ?? root,
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
