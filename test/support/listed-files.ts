// The files of the repository, as Git lists them: those that are kept, and those that would be.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..', '..');

/** Paths from the root, of the patterns that are given or of all; without what is deleted. */
export function listFiles(...patterns: string[]): string[] {
  const listed = execFileSync(
    'git',
    ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...patterns],
    { cwd: root, encoding: 'utf8', maxBuffer: 16 * 1024 * 1024 },
  );
  return [...new Set(listed.split('\0'))].filter(
    (path) => path !== '' && existsSync(join(root, path)),
  );
}
