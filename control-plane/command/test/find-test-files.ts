// Finds the files of rule tests that a command line names.
import { readdir, stat } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import { unreadable } from '../../../shared/rules-directory.ts';
import { defaultBounds } from '../../../shared/rules-file.ts';

export type FoundTestFiles =
  | { readonly ok: true; readonly paths: readonly string[] }
  /** Why there is nothing to run, without a final full stop. */
  | { readonly ok: false; readonly message: string };

/** Accepts named files whatever their names; below directories, finds `*_test.yaml` and `*_test.yml`. */
export async function findTestFiles(given: readonly string[]): Promise<FoundTestFiles> {
  const paths = new Set<string>();
  for (const name of given) {
    const path = name === '' ? name : normalize(name);
    const found = await stat(path).catch((error: unknown) => unreadable(error));
    if (typeof found === 'string') return { ok: false, message: `'${name}' ${found}` };
    if (!found.isDirectory()) paths.add(path);
    else {
      const entries = await readdir(path, { recursive: true }).catch((error: unknown) =>
        unreadable(error),
      );
      if (typeof entries === 'string') return { ok: false, message: `'${name}' ${entries}` };
      const files = entries.filter(isTestPath).sort();
      if (files.length === 0) {
        return { ok: false, message: `'${name}' has no file named *_test.yaml or *_test.yml` };
      }
      for (const file of files) paths.add(join(path, file));
    }
  }
  const { files: most } = defaultBounds;
  if (paths.size > most) return { ok: false, message: `more than ${most} files of tests` };
  return { ok: true, paths: [...paths] };
}

function isTestPath(path: string): boolean {
  return /_test\.ya?ml$/.test(path) && !/(?:^|[\\/])(?:\.git|node_modules)[\\/]/.test(path);
}
