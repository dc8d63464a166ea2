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

/** `npm` is a command and its first arguments. The text of the document; throws where npm gives none. */
export function createSbom(root, [npm, ...first]) {
  const read = (name) => JSON.parse(readFileSync(join(root, name), 'utf8'));
  const manifest = read('package.json');
  const lock = read('package-lock.json');
  // Packages of tests are taken out here: --omit=dev also leaves out those of them that the programs need.
  for (const project of [manifest, lock.packages['']]) {
    delete project.devDependencies;
    for (const name of Object.keys(project.optionalDependencies).filter(isCarriedNode)) {
      delete project.optionalDependencies[name];
      delete lock.packages[`node_modules/${name}`];
    }
  }
  for (const [path, { dev }] of Object.entries(lock.packages)) {
    if (dev) delete lock.packages[path];
  }
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
