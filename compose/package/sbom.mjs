// The software bill of materials of the package, as CycloneDX: what the programs run with, with the versions, licences
// and hashes of the lock file. It is npm's own, of a project without what the package does not bring along.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const npmTimeoutMs = 60_000;

/** The Node that comes along with the sources; a package with a bin would put another `node` on the path of who installs it. */
export function isCarriedNode(name) {
  return name.startsWith('node-');
}

/**
 * The lock file of what the programs run with, for the manifest that names it: without packages of tests, the carried Node,
 * and those that `isLeftOut` names.
 */
export function toReleaseLock(root, manifest, isLeftOut = () => false) {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const { name, version, license, dependencies, optionalDependencies, engines, bin } = manifest;
  const own = { name, version, license, dependencies, optionalDependencies, engines, bin };
  const packages = { '': own };
  for (const [path, locked] of Object.entries(lock.packages)) {
    const [, top] = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
    if (top === undefined || locked.dev || isCarriedNode(top) || isLeftOut(top)) continue;
    const { dev: _, devOptional, ...rest } = locked;
    // Packages of tests, which need these too, are not there.
    packages[path] = devOptional ? { ...rest, optional: true } : rest;
  }
  return { ...lock, name, version, packages };
}

/** `npm` is a command and its first arguments. The text of the document; throws where npm gives none. */
export function createSbom(root, [npm, ...first]) {
  const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  // Packages of tests are taken out here: --omit=dev also leaves out those of them that the programs need.
  delete manifest.devDependencies;
  for (const name of Object.keys(manifest.optionalDependencies).filter(isCarriedNode)) {
    delete manifest.optionalDependencies[name];
  }
  const lock = toReleaseLock(root, manifest);
  const parent = mkdtempSync(join(tmpdir(), 'ratelane-sbom-'));
  try {
    // npm names the component by its folder.
    const folder = join(parent, manifest.name);
    mkdirSync(folder);
    writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
    writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
    const flags = ['--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
    const { status, stdout, stderr } = spawnSync(npm, [...first, 'sbom', ...flags], {
      cwd: folder,
      encoding: 'utf8',
      timeout: npmTimeoutMs,
      maxBuffer: 64 * 1024 * 1024,
    });
    if (status !== 0) throw new Error(`npm sbom failed: ${stderr}`);
    return stdout;
  } finally {
    rmSync(parent, { recursive: true, force: true });
  }
}
