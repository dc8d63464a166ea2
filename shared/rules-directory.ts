// Finds and reads the rules files below one directory: which names count, what is skipped, and the bounds.
// shared/rules parses them.
import type { Stats } from 'node:fs';
import { constants } from 'node:fs';
import { lstat, open, opendir, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { errorText } from './errors.ts';
import { compareFiles } from './rules/file-order.ts';
import { type Problem, problemOf } from './rules/problem/problem.ts';
import {
  type Bounds,
  decodeRulesText,
  findExcess,
  isRulesPath,
  notRules,
  type RulesFile,
  toFirstProblems,
  tooDeep,
  tooLarge,
} from './rules-file.ts';

/** The files found, without their content. */
export interface Listing {
  /** In the order in which they take effect; empty when there are more than the bounds allow. */
  readonly files: readonly ListedFile[];
  /** All directories that were read, for the watch. */
  readonly directories: readonly string[];
  readonly problems: readonly Problem[];
  /** The number of links to directories, which are never followed. */
  readonly linkedDirectories: number;
  /** True when there is no such directory; the rest is then empty. */
  readonly missing: boolean;
  /** Differs when a file appeared, vanished, or was written, replaced or had its mode changed. */
  readonly signature: string;
}

export interface ListedFile {
  readonly path: string;
  readonly sizeBytes: number;
  /** Differs when the file was written, replaced or had its mode changed since. */
  readonly identity: string;
  /** The time of that change, in ms of the file system's clock. */
  readonly changedMs: number;
}

export interface ListOptions {
  /** The directory whose files are the rules, subdirectories included. */
  readonly directory: string;
  /** A second directory and a prefix: files and directories there that begin with the prefix count as well. */
  readonly beside: { readonly directory: string; readonly prefix: string } | undefined;
  readonly ignoreDotFiles: boolean;
  /**
   * Whether a link that leads out of the directory is a problem: users who may write there must not read other files of
   * this machine.
   */
  readonly staysInside?: boolean;
  readonly bounds: Bounds;
}

/**
 * Lists the rules files of a directory, those whose names and links count (behaviour: files-of-rules). Never rejects: a
 * file that cannot be read is a problem.
 */
export async function listRulesFiles(options: ListOptions): Promise<Listing> {
  const { directory, beside, ignoreDotFiles, staysInside = false, bounds } = options;
  const root = staysInside ? await realpath(directory).catch(() => undefined) : undefined;
  const files: ListedFile[] = [];
  const directories: string[] = [];
  const problems: Problem[] = [];
  const identities: string[] = [];
  let linkedDirectories = 0;
  let missing = false;
  /** How many names were read; `files` counts those of rules files. */
  const counts = { entries: 0, files: 0 };

  const addProblem = (...problem: Parameters<typeof problemOf>) =>
    problems.push(problemOf(...problem));

  async function visitEntries(folder: string, names: readonly string[], depth: number) {
    for (let at = 0; at < names.length && !isTooMuch(); at += atOnce) {
      const some = names.slice(at, at + atOnce);
      const found = await Promise.all(some.map((name) => readEntry(join(folder, name))));
      for (const [index, entry] of found.entries()) {
        await visitEntry(some[index] ?? '', entry, depth);
      }
      await setImmediate();
    }
  }

  async function visitEntry(name: string, entry: FoundEntry, depth: number): Promise<void> {
    const { path } = entry;
    if ('error' in entry) {
      const { error } = entry;
      // Removed since its name was read.
      if (entry.isGone) return;
      if (isRulesPath(name)) addProblem('error', 'unreadable-file', path, unreadable(error));
      else addProblem('warning', 'ignored-file', path, `${unreadable(error)}; it is ignored`);
      identities.push(`${path}\0${codeOf(error)}`);
      return;
    }
    const { own, target } = entry;
    if (own.isSymbolicLink() && target.isDirectory()) {
      linkedDirectories++;
      addProblem(
        'warning',
        'ignored-file',
        path,
        'a symbolic link to a directory is not followed; it is ignored',
        'link the files one by one, or make it a directory',
      );
    } else if (target.isDirectory()) {
      await visitDirectory(path, depth + 1);
    } else if (!isRulesPath(name)) {
      problems.push(notRules(path));
    } else if (!target.isFile()) {
      addProblem('error', 'unreadable-file', path, 'it is neither a file nor a directory');
    } else if (own.isSymbolicLink() && !(await isInside(root, path))) {
      problems.push(linkOut(path));
      identities.push(`${path}\0outside`);
    } else {
      const identity = identityOf(target);
      files.push({ path, sizeBytes: target.size, identity, changedMs: target.ctimeMs });
      identities.push(`${path}\0${identity}`);
    }
  }

  async function visitDirectory(path: string, depth: number): Promise<void> {
    if (depth > bounds.depth) {
      problems.push(tooDeep(path, bounds));
      return;
    }
    const names = await readNames(path, depth === 0);
    if (names === undefined) return;
    directories.push(path);
    identities.push(path);
    // Nothing is read then.
    if (isTooMuch()) return;
    await visitEntries(path, names, depth);
  }

  function isSkipped(name: string): boolean {
    return name.startsWith('..') || (ignoreDotFiles && name.startsWith('.'));
  }

  function isTooMuch(): boolean {
    return counts.entries > bounds.entries || counts.files > bounds.files;
  }

  /**
   * The names that begin with `prefix`, sorted; only some of them when there are too many. Undefined when the directory
   * cannot be read, which is noted.
   */
  async function readNames(
    path: string,
    isTop: boolean,
    prefix = '',
  ): Promise<string[] | undefined> {
    const names: string[] = [];
    try {
      for await (const { name } of await opendir(path)) {
        counts.entries++;
        if (name.startsWith(prefix) && !isSkipped(name)) {
          names.push(name);
          if (isRulesPath(name)) counts.files++;
        }
        if (isTooMuch()) break;
      }
    } catch (error) {
      const code = codeOf(error);
      if (isTop && (code === 'ENOENT' || code === 'ENOTDIR')) missing = true;
      else addProblem('error', 'unreadable-file', path, unreadable(error));
      identities.push(`${path}\0${code}`);
      return undefined;
    }
    return names.sort();
  }

  await visitDirectory(directory, 0);
  if (beside !== undefined) {
    for (const name of (await readNames(beside.directory, true, beside.prefix)) ?? []) {
      if (isTooMuch()) break;
      const path = join(beside.directory, name);
      // Other kinds of entries are ignored there.
      const kind = await kindOf(path);
      if (kind === 'directory' || (kind === 'file' && isRulesPath(name))) {
        await visitEntry(name, await readEntry(path), 0);
      }
    }
    if (files.length > 0) missing = false;
  }
  const excess = findExcess(directory, counts, files, bounds);
  if (excess.length > 0) files.length = 0;
  files.sort((a, b) => compareFiles(a.path, b.path));
  return {
    files,
    directories,
    problems: [...toFirstProblems(directory, problems), ...excess],
    linkedDirectories,
    missing,
    signature: identities.sort().join('\n'),
  };
}

/** Whether a file is a symbolic link that leads out of this directory, by default its own. */
export async function leadsOut(path: string, directory = dirname(path)): Promise<boolean> {
  const own = await lstat(path).catch(() => undefined);
  if (!own?.isSymbolicLink()) return false;
  return !(await isInside(await realpath(directory).catch(() => undefined), path));
}

export function linkOut(path: string): Problem {
  const message = 'it is a symbolic link that leads out of the directory, which is not followed';
  const hint = 'put the file itself in its place';
  return problemOf('error', 'unreadable-file', path, message, hint);
}

/** With `root` undefined, every path is inside. */
async function isInside(root: string | undefined, path: string): Promise<boolean> {
  if (root === undefined) return true;
  const target = relative(root, await realpath(path).catch(() => '/'));
  // A hidden part is no rules file but, for example, the configuration of Git. `..` followed by a word is the content
  // of a mounted volume.
  return target.split(sep).every((part) => part !== '..' && !/^\.(?!\.)/.test(part));
}

/** How many files are checked or read at the same time before the thread serves other callers. */
const atOnce = 32;

/** One entry of a directory: itself, and its target if it is a link. */
type FoundEntry =
  | { readonly path: string; readonly own: Stats; readonly target: Stats }
  | { readonly path: string; readonly error: unknown; readonly isGone: boolean };

async function readEntry(path: string): Promise<FoundEntry> {
  let own: Stats | undefined;
  try {
    own = await lstat(path);
    return { path, own, target: own.isSymbolicLink() ? await stat(path) : own };
  } catch (error) {
    return { path, error, isGone: own === undefined && codeOf(error) === 'ENOENT' };
  }
}

/** Returns the text of each file, and a problem for each that cannot be read. */
export async function readRulesFiles(
  listed: readonly Pick<ListedFile, 'path'>[],
  bounds: Bounds,
): Promise<{ readonly files: readonly RulesFile[]; readonly problems: readonly Problem[] }> {
  const files: RulesFile[] = [];
  const problems: Problem[] = [];
  for (let at = 0; at < listed.length; at += atOnce) {
    const some = listed.slice(at, at + atOnce);
    const texts = await Promise.all(some.map(({ path }) => readText(path, bounds)));
    for (const [index, text] of texts.entries()) {
      if (typeof text === 'string') files.push({ path: some[index]?.path ?? '', text });
      else problems.push(text);
    }
    await setImmediate();
  }
  return { files, problems };
}

async function readText(path: string, bounds: Bounds): Promise<string | Problem> {
  const maxBytes = bounds.fileBytes;
  let bytes: Buffer;
  try {
    // Without O_NONBLOCK, a pipe put in the file's place would block the reader for ever.
    const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const { size } = await handle.stat();
      if (size > maxBytes) return tooLarge(path, size, bounds);
      // One byte more than allowed, to detect a file that grew meanwhile.
      const buffer = Buffer.alloc(Math.min(size + 4096, maxBytes + 1));
      let length = 0;
      while (length < buffer.length) {
        const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      if (length > maxBytes) return tooLarge(path, length, bounds);
      if (length === buffer.length)
        return problemOf('error', 'unreadable-file', path, 'it grew while it was read');
      bytes = buffer.subarray(0, length);
    } finally {
      await handle.close();
    }
  } catch (error) {
    return problemOf('error', 'unreadable-file', path, unreadable(error));
  }
  return decodeRulesText(path, bytes);
}

async function kindOf(path: string): Promise<'file' | 'directory' | undefined> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) return 'directory';
  return found?.isFile() ? 'file' : undefined;
}

/** The status change time changes with every write, replacement and change of mode. */
function identityOf({ dev, ino, size, mtimeMs, ctimeMs }: Stats): string {
  return [dev, ino, size, mtimeMs, ctimeMs].join(' ');
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : errorText(error);
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'no permission to read it',
  EPERM: 'no permission to read it',
  ENOENT: 'it does not exist',
  ELOOP: 'its symbolic links lead in a circle',
  EISDIR: 'it is a directory',
};

/** The reason why a file cannot be read, human-readable. */
export function unreadable(error: unknown): string {
  const code = codeOf(error);
  return `cannot be read: ${reasons[code] ?? errorText(error)} (${code})`;
}
