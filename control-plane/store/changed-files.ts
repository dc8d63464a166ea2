// The files of a revision after a change.
import { byPath, type Revision } from './revision.ts';
import type { Change } from './store.ts';

/** The problems are those of files that stay as they are. */
export function applyChange(
  { files, problems }: Pick<Revision, 'files' | 'problems'>,
  change: Change,
): Pick<Revision, 'files' | 'problems'> {
  const after = new Map(files.map((file) => [file.path, file]));
  for (const path of change.delete) after.delete(path);
  for (const file of change.put) after.set(file.path, file);
  const changed = new Set([...change.delete, ...change.put.map(({ path }) => path)]);
  return {
    files: [...after.values()].sort(byPath),
    problems: problems.filter(({ file }) => !changed.has(file)),
  };
}
