// Reads a commit's configuration files from a bare repository, without a work tree.
import { AppError } from '../../../shared/errors.ts';
import { runInSlices } from '../../../shared/in-slices.ts';
import type { Problem } from '../../../shared/rules/problem/problem.ts';
import { problemOf } from '../../../shared/rules/problem/problem.ts';
import {
  type Bounds,
  decodeRulesText,
  findExcess,
  isHidden,
  isRulesPath,
  notRules,
  toFirstProblems,
  tooDeep,
  tooLarge,
} from '../../../shared/rules-file.ts';
import { type Git, GitError } from './git-command.ts';
import {
  byPath,
  type Revision,
  type RevisionInfo,
  type StoredFile,
  toInfoText,
} from './revision.ts';

const timeoutMs = 30_000;
/** Git's exit code for 'no' or 'not found'; failures have other codes. */
const exitCodeOfNo = 1;
const maxListBytes = 64 * 1024 * 1024;
const maxLogBytes = 16 * 1024 * 1024;
/** File modes as git writes them. */
const modes = { folder: '040000', link: '120000', submodule: '160000' };

export interface TreeOptions {
  /** '' is the whole repository. */
  readonly folder: string;
  readonly bounds: Bounds;
  /** Whether a file that is missing in the copy was omitted as too large. Otherwise the copy is damaged. */
  isLeftOut(id: string): boolean;
  readonly signal: AbortSignal | undefined;
}

/** The commit exists, but has no such folder. */
export class FolderError extends AppError {
  readonly info: RevisionInfo;
  readonly reason: string;

  constructor(info: RevisionInfo, reason: string) {
    super('store', `revision ${info.id} has ${reason}`);
    this.info = info;
    this.reason = reason;
  }
}

/** `commit` is a full id. Rejects with an AppError `store` when the commit is missing, with a FolderError when it has
 * no such folder, and with a GitError when the repository is damaged. */
export async function readRevisionOf(
  git: Git,
  commit: string,
  options: TreeOptions,
): Promise<Revision> {
  const { folder, signal } = options;
  const [info] = await readLog(git, ['-n', '1', commit], signal);
  if (info === undefined) throw new AppError('store', `revision ${commit} is not known`);
  const tree = await findTree(git, commit, options);
  if (tree === undefined) throw new FolderError(info, `no folder '${folder}'`);
  const other = folder === '' ? undefined : await findOtherThanFolder(git, commit, options);
  if (other !== undefined) {
    throw new FolderError(info, `${other} at '${folder}', where --git-path needs a folder`);
  }
  const problems: Problem[] = [];
  const blobs = await listBlobs(git, tree, options, problems);
  const files = await readBlobs(git, blobs, signal, problems);
  return Object.freeze({ ...info, files: files.sort(byPath), problems });
}

/** The object in the place of the folder; undefined when it is a folder. */
async function findOtherThanFolder(
  git: Git,
  commit: string,
  { folder, signal }: TreeOptions,
): Promise<string | undefined> {
  const args = ['ls-tree', '-z', '--full-tree', commit, '--', folder];
  const mode = (await git.run(args, { timeoutMs, signal })).toString().split(' ', 1)[0];
  if (mode === modes.folder) return undefined;
  if (mode === modes.link) return 'a symbolic link';
  return mode === modes.submodule ? 'a submodule' : 'a file';
}

/** The id of the object at the folder's path; undefined when there is none, or no such commit. */
export async function findTree(
  git: Git,
  commit: string,
  { folder, signal }: Pick<TreeOptions, 'folder' | 'signal'>,
): Promise<string | undefined> {
  return resolveObject(git, folder === '' ? `${commit}^{tree}` : `${commit}:${folder}`, signal);
}

/** Undefined when there is no such object. */
export async function resolveObject(
  git: Git,
  expression: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  try {
    const args = ['rev-parse', '--verify', '--quiet', '--end-of-options', expression];
    return (await git.run(args, { timeoutMs, signal })).toString().trim();
  } catch (error) {
    // The only failure that is silently accepted; git may print other warnings with it.
    if (error instanceof GitError && error.exitCode === exitCodeOfNo) return undefined;
    throw error;
  }
}

/** Whether the commit `later` is `earlier` or a descendant of it; both are full ids. */
export async function isAncestor(git: Git, earlier: string, later: string): Promise<boolean> {
  try {
    await git.run(['merge-base', '--is-ancestor', earlier, later], { timeoutMs });
    return true;
  } catch (error) {
    if (error instanceof GitError && error.exitCode === exitCodeOfNo) return false;
    throw error;
  }
}

/** `args` select the commits. */
export async function readLog(
  git: Git,
  args: readonly string[],
  signal?: AbortSignal,
): Promise<RevisionInfo[]> {
  const format = '--format=%H%x00%ct%x00%an <%ae>%x00%B';
  const output = await git.run(['log', '-z', '--no-show-signature', format, ...args], {
    timeoutMs,
    maxBytes: maxLogBytes,
    signal,
  });
  const fields = output.toString().split('\0');
  const infos: RevisionInfo[] = [];
  for (let at = 0; at + 3 < fields.length; at += 4) {
    const [id = '', seconds = '', author = '', message = ''] = fields.slice(at, at + 4);
    const atMs = Number(seconds) * 1000;
    // The owner of a token has no address.
    const shown = author.replace(/ <>$/, '');
    infos.push({ id, atMs, author: toInfoText(shown), message: toInfoText(message) });
  }
  return infos;
}

interface Blob {
  readonly path: string;
  readonly id: string;
  readonly sizeBytes: number;
}

async function listBlobs(
  git: Git,
  tree: string,
  options: TreeOptions,
  problems: Problem[],
): Promise<Blob[]> {
  const output = await git.run(['ls-tree', '-r', '-z', '-l', '--full-tree', tree], {
    timeoutMs,
    maxBytes: maxListBytes,
    signal: options.signal,
  });
  return runInSlices(findingBlobs(output, options, problems));
}

/** Entries of a tree that are read in one step. */
const entriesAtOnce = 100;

function* findingBlobs(
  output: Buffer,
  { bounds, isLeftOut }: TreeOptions,
  problems: Problem[],
): Generator<void, Blob[]> {
  const blobs: Blob[] = [];
  const listed: Problem[] = [];
  let entries = 0;
  for (const line of splitLines(output)) {
    if (++entries % entriesAtOnce === 0) yield;
    const text = line.toString();
    const tab = text.indexOf('\t');
    const [mode = '', , id = '', size = ''] = text.slice(0, tab).split(/ +/);
    const path = text.slice(tab + 1);
    if (isHidden(path)) continue;
    const problem = judge(mode, path, bounds);
    if (problem !== undefined) {
      listed.push(problem);
      continue;
    }
    // Git prints no size for a file that is missing in the copy.
    const sizeBytes = /^\d+$/.test(size) ? Number(size) : undefined;
    if (sizeBytes === undefined && !isLeftOut(id)) throw missing(id, path);
    if (sizeBytes === undefined || sizeBytes > bounds.fileBytes) {
      listed.push(tooLarge(path, sizeBytes, bounds));
    } else {
      blobs.push({ path, id, sizeBytes });
    }
  }
  const excess = findExcess('.', { entries, files: blobs.length }, blobs, bounds);
  problems.push(...toFirstProblems('.', listed), ...excess);
  return excess.length > 0 ? [] : blobs;
}

/** Why an entry is not read, whatever its size; with the same messages as for a directory. */
function judge(mode: string, path: string, bounds: Bounds): Problem | undefined {
  if (mode === modes.submodule) {
    const message = 'a submodule is not read; it is ignored';
    const hint = 'rules in it would not be read: put them into this repository';
    return problemOf('warning', 'ignored-file', path, message, hint);
  }
  if (!isRulesPath(path)) return notRules(path);
  if (mode === modes.link) {
    const message = 'a symbolic link is not followed in a Git repository';
    const hint = 'put the file itself in its place';
    return problemOf('error', 'unreadable-file', path, message, hint);
  }
  // Decoding replaces bytes that are not UTF-8 with this character.
  if (path.includes('\ufffd'))
    return problemOf('error', 'unreadable-file', path, "the file's name is not UTF-8");
  return path.split('/').length > bounds.depth ? tooDeep(path, bounds) : undefined;
}

async function readBlobs(
  git: Git,
  blobs: readonly Blob[],
  signal: AbortSignal | undefined,
  problems: Problem[],
): Promise<StoredFile[]> {
  if (blobs.length === 0) return [];
  const output = await git.run(['cat-file', '--batch'], {
    timeoutMs,
    maxBytes: blobs.reduce((sum, blob) => sum + blob.sizeBytes + 128, 0),
    input: blobs.map(({ id }) => `${id}\n`).join(''),
    signal,
  });
  return runInSlices(readingFiles(output, blobs, problems));
}

function* readingFiles(
  output: Buffer,
  blobs: readonly Blob[],
  problems: Problem[],
): Generator<void, StoredFile[]> {
  const files: StoredFile[] = [];
  let at = 0;
  for (const { path, id, sizeBytes } of blobs) {
    const head = Buffer.from(`${id} blob ${sizeBytes}\n`);
    const begin = at + head.length;
    if (!output.subarray(at, begin).equals(head)) {
      throw missing(id, path);
    }
    at = begin + sizeBytes + 1;
    const text = decodeRulesText(path, output.subarray(begin, begin + sizeBytes));
    if (typeof text === 'string') files.push({ path, text });
    else problems.push(text);
    yield;
  }
  return files;
}

function missing(id: string, path: string): GitError {
  return new GitError(`${path} (object ${id}) is not in it`, `missing ${id}`);
}

function* splitLines(output: Buffer): Generator<Buffer> {
  for (let at = 0; at < output.length; ) {
    const end = output.indexOf(0, at);
    if (end === -1) return;
    yield output.subarray(at, end);
    at = end + 1;
  }
}
