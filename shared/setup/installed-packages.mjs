// Finds whether node_modules holds the packages of package-lock.json. Plain JavaScript for Node 20 and later: it
// runs before anything is installed. Installing is install-packages.mjs' business.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The first major version of Node that runs our TypeScript files as they are. */
export const neededNodeMajor = 24;

/** The Node that comes along as a package; undefined where none does. */
export function bundledNode(root) {
  const hasOne = process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch);
  return hasOne ? join(root, 'node_modules', '.bin', 'node') : undefined;
}

/**
 * Compares with the record that npm writes when it has finished, so that an interrupted
 * installation, or one that was made by hand, is judged rightly.
 *
 * @param {string} root the folder of package-lock.json
 * @param {boolean} withDev whether the development packages are wanted as well; having them
 *   satisfies who does not want them
 * @returns {string | undefined} undefined when nothing is to do, else the reason in a few words
 */
export function missingPackages(root, withDev) {
  const wanted = lockedPackages(join(root, 'package-lock.json'));
  if (wanted === undefined) {
    throw new Error(`${join(root, 'package-lock.json')} is missing or is not JSON`);
  }
  const present = lockedPackages(join(root, 'node_modules', '.package-lock.json'));
  if (present === undefined) {
    return 'no packages are installed';
  }
  for (const [path, locked] of Object.entries(wanted)) {
    if (path === '' || (locked.dev === true && !withDev)) {
      continue;
    }
    const installed = present[path];
    if (installed === undefined) {
      if (locked.optional === true) {
        continue;
      }
      return `${packageName(path)} is missing`;
    }
    if (installed.version !== locked.version || installed.integrity !== locked.integrity) {
      return `${packageName(path)} is ${installed.version} instead of ${locked.version}`;
    }
  }
  const node = bundledNode(root);
  if (node !== undefined && runningNodeMajor() < neededNodeMajor && !existsSync(node)) {
    return 'the bundled Node is missing';
  }
  return undefined;
}

export function runningNodeMajor() {
  return Number(process.versions.node.split('.')[0]);
}

function lockedPackages(path) {
  try {
    return JSON.parse(readFileSync(path, 'utf8')).packages;
  } catch {
    return undefined;
  }
}

function packageName(path) {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}
