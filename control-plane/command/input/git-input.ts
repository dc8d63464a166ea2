// Rules from one revision of a Git repository, fetched into a temporary bare one: nothing is checked
// out, so no hook or filter of the repository runs. How git is run is left to the store.
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Problem } from '../../../shared/rules/problem.ts';
import { defaultBounds, problemOf, type RulesFile } from '../../../shared/rules-directory.ts';
import { parseGitAddress } from '../../store/git-address.ts';
import { createGit, type Git, GitError } from '../../store/git-command.ts';
import type { RuleInput, RuleInputResult } from './rule-input.ts';

export interface GitSource {
  /** A URL, or the path of a local repository. */
  readonly url: string;
  readonly revision: string;
  /** Only what lies below is read; '' is everything. */
  readonly path: string;
}

/** Fetching a large repository over a slow line takes minutes. */
const fetchTimeoutMs = 300_000;
const readTimeoutMs = 60_000;
/** All content that may be read, with room for its headings. */
const maxBytes = 2 * defaultBounds.totalBytes;

/** `path` of each file is its path in the repository. */
export async function readGitInput(
  source: GitSource,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<RuleInputResult> {
  // The fetch runs in another repository, for which `.` would be itself.
  const url = existsSync(source.url) ? resolve(source.url) : source.url;
  const parsed = parseGitAddress(url);
  if (!parsed.ok) return { ok: false, message: `--git ${source.url}: ${parsed.reason}` };
  const { address } = parsed;
  const repository = await mkdtemp(join(tmpdir(), 'ratelane-git-'));
  const git = createGit({
    repository,
    address,
    environment,
    readCredentials: async () => address.credentials,
  });
  try {
    return await readRevision(git, address.url, source);
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    return { ok: false, message: `${address.shown}: ${error.message}` };
  } finally {
    await rm(repository, { recursive: true, force: true });
  }
}

async function readRevision(git: Git, url: string, source: GitSource): Promise<RuleInputResult> {
  const { revision } = source;
  const run = (...args: string[]) => git.run(args, { timeoutMs: readTimeoutMs, maxBytes });
  const fetch = (...refs: string[]) =>
    git.run(['fetch', '--quiet', '--no-tags', '--', url, ...refs], {
      timeoutMs: fetchTimeoutMs,
      isRemote: true,
    });

  await run('init', '--quiet', '--bare');
  await fetch('+HEAD:refs/ratelane/head', '+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*');
  await run('update-ref', '--no-deref', 'HEAD', 'refs/ratelane/head');
  const commit = await findCommit(revision, run, fetch);
  if (commit === undefined) {
    return { ok: false, message: `revision '${revision}' is not in ${source.url}` };
  }
  const below = source.path.replace(/^(?:\.?\/)+/, '').replace(/\/+$/, '');
  const within = below === '' || below === '.' ? [] : ['--', below];
  const listing = await run('ls-tree', '-r', '-z', '-l', '--full-tree', commit, ...within);
  if (within.length > 0 && listing.length === 0) {
    return { ok: false, message: `'${source.path}' is not in revision '${revision}'` };
  }
  const { blobs, problems } = selectBlobs(listing.toString());
  const contents = await git.run(['cat-file', '--batch'], {
    timeoutMs: readTimeoutMs,
    maxBytes,
    input: blobs.map(({ id }) => `${id}\n`).join(''),
  });
  const input: RuleInput = { files: decodeBlobs(blobs, contents, problems), problems, commit };
  return { ok: true, input };
}

/** The commit's full name; undefined when neither a branch, a tag nor the remote itself knows it. */
async function findCommit(
  revision: string,
  run: (...args: string[]) => Promise<Buffer>,
  fetch: (...refs: string[]) => Promise<Buffer>,
): Promise<string | undefined> {
  const parse = async (name: string) =>
    (await run('rev-parse', '--verify', '--end-of-options', `${name}^{commit}`)).toString().trim();
  try {
    return await parse(revision);
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
  }
  try {
    // A commit that no branch leads to, or a name such as that of a pull request.
    await fetch(revision);
    return await parse('FETCH_HEAD');
  } catch (error) {
    if (!(error instanceof GitError)) throw error;
    return undefined;
  }
}

interface Blob {
  readonly id: string;
  readonly path: string;
}

/** The selection of decisions 9, within the bounds that hold for directories. */
function selectBlobs(listing: string): { blobs: readonly Blob[]; problems: Problem[] } {
  const blobs: Blob[] = [];
  const problems: Problem[] = [];
  let totalBytes = 0;
  for (const line of listing.split('\0')) {
    const [, mode, type, id, size, path] =
      /^(\d+) (\w+) ([0-9a-f]+) +(\d+|-)\t(.+)$/s.exec(line) ?? [];
    if (type !== 'blob' || id === undefined || path === undefined) continue;
    if (path.split('/').some((part) => part.startsWith('..'))) continue;
    if (mode === '120000') {
      problems.push(problemOf('warning', path, 'a symbolic link is not followed; it is ignored'));
    } else if (!/\.ya?ml$/.test(path)) {
      problems.push(
        problemOf(
          'warning',
          path,
          'only files named *.yaml and *.yml are read; it is ignored',
          'rename it if it holds rules; --git-path names the part of a repository to read',
        ),
      );
    } else if (Number(size) > defaultBounds.fileBytes) {
      const most = defaultBounds.fileBytes;
      const message = `${size} bytes, more than the ${most} that a file may have`;
      problems.push(problemOf('error', path, message));
    } else {
      blobs.push({ id, path });
      totalBytes += Number(size);
    }
  }
  const excess = [
    [blobs.length, defaultBounds.files, 'files'],
    [totalBytes, defaultBounds.totalBytes, 'bytes in all'],
  ] as const;
  for (const [count, most, what] of excess) {
    if (count <= most) continue;
    const hint = '--git-path names the part of a repository to read';
    problems.push(problemOf('error', '.', `more than ${most} ${what}; nothing is read`, hint));
    blobs.length = 0;
  }
  if (blobs.length === 0 && !problems.some(({ severity }) => severity === 'error')) {
    problems.push(problemOf('warning', '.', 'no file named *.yaml or *.yml'));
  }
  return { blobs, problems };
}

/** `output`: for each blob `<id> blob <size>`, a line end, the content, a line end. */
function decodeBlobs(blobs: readonly Blob[], output: Buffer, problems: Problem[]): RulesFile[] {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const files: RulesFile[] = [];
  let at = 0;
  for (const { path } of blobs) {
    const headEnd = output.indexOf('\n', at);
    const size = Number(output.toString('latin1', at, headEnd).split(' ')[2]);
    const content = output.subarray(headEnd + 1, headEnd + 1 + size);
    at = headEnd + size + 2;
    try {
      files.push({ path, text: decoder.decode(content) });
    } catch {
      const hint = 'save it as UTF-8';
      problems.push(problemOf('error', path, 'the file is not UTF-8 text', hint));
    }
  }
  return files;
}
