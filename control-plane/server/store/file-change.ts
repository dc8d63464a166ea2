// Checks whether a change is allowed for the files of a store, and applies it to a revision's files. The limits on
// their number and size are those of shared/rules-file.ts.
import { isError, type Problem, problemOf } from '../../../shared/rules/problem/problem.ts';
import { type Bounds, isHidden, isRulesPath } from '../../../shared/rules-file.ts';
import { byPath, type Revision } from './revision.ts';
import type { Change } from './store.ts';

const maxPathLength = 1024;

/** Paths of all rules files of a revision, readable or not. */
export function existingPaths({
  files,
  problems,
}: Pick<Revision, 'files' | 'problems'>): ReadonlySet<string> {
  const paths = new Set(files.map(({ path }) => path));
  for (const { file } of problems.filter(isError)) {
    // A replacement character stands for unknown bytes of a name.
    const isFile = isRulesPath(file) && !isHidden(file) && !file.includes('\ufffd');
    if (isFile) paths.add(file);
  }
  return paths;
}

/** Every reason why this change is impossible in a store with these files. In steps. */
export function* checkingChange(
  change: Change,
  existing: ReadonlySet<string>,
  bounds: Bounds,
): Generator<void, Problem[]> {
  const problems: Problem[] = [];
  const refuse = (path: string, message: string, hint?: string) => {
    problems.push(problemOf('error', 'unwritable-path', path, message, hint));
  };
  const after = new Set(existing);
  const named = new Set<string>();
  for (const path of [...change.delete, ...change.put.map((file) => file.path)]) {
    if (named.has(path)) refuse(path, 'the path occurs twice in one change');
    named.add(path);
  }
  for (const path of change.delete) {
    if (!after.delete(path)) refuse(path, 'there is no such file to delete');
  }
  let totalBytes = 0;
  for (const { path, text } of change.put) {
    yield;
    const reason = reasonAgainst(path, bounds);
    if (reason !== undefined) refuse(path, reason);
    const bytes = Buffer.byteLength(text);
    totalBytes += bytes;
    if (bytes > bounds.fileBytes) {
      refuse(path, `${bytes} bytes, more than the ${bounds.fileBytes} that a file may have`);
    }
    if (!text.isWellFormed()) refuse(path, 'the text is not valid Unicode');
    after.add(path);
  }
  if (totalBytes > bounds.totalBytes) {
    refuse('(all files)', `${totalBytes} bytes, more than the ${bounds.totalBytes} allowed in all`);
  }
  if (after.size > bounds.files) {
    refuse('(all files)', `${after.size} files, more than the ${bounds.files} allowed`);
  }
  for (const { path } of change.put) {
    yield;
    const above = foldersOf(path).find((folder) => after.has(folder));
    if (above !== undefined) refuse(path, `'${above}' is a file, so nothing can be in it`);
  }
  return problems;
}

/** The files after the change. The problems are those of unchanged files. */
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
    problems: problems.filter(
      // Writing a file creates its folder.
      ({ file, rule }) =>
        !changed.has(file) && !(rule === 'missing-folder' && change.put.length > 0),
    ),
  };
}

function reasonAgainst(path: string, bounds: Bounds): string | undefined {
  const parts = path.split('/');
  if (path.length > maxPathLength) return `the path is longer than ${maxPathLength} characters`;
  if (parts.length > bounds.depth) return `folders are nested deeper than ${bounds.depth}`;
  if (/[\p{Cc}\\]/u.test(path) || !path.isWellFormed()) {
    return 'the path has a backslash or a character that cannot be seen';
  }
  if (parts.some((part) => part === '')) return 'the path has an empty part, or begins with /';
  if (isHidden(path)) return "no part of a path may begin with '.'";
  if (!isRulesPath(path)) return 'only files named *.yaml and *.yml are configuration';
  return undefined;
}

function foldersOf(path: string): string[] {
  const parts = path.split('/');
  return parts.slice(1).map((_, index) => parts.slice(0, index + 1).join('/'));
}
