// Creates a commit in a bare repository, without a work tree. git-mirror.ts pushes it.
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Git } from './git-command.ts';
import { resolveObject } from './git-tree.ts';
import type { StoredFile } from './revision.ts';
import type { Author, Change } from './store.ts';

export interface CommitOptions {
  /** Folder of the temporary index. */
  readonly indexFolder: string;
  readonly parent: string;
  /** '' is the whole repository; the change's paths are relative to it. */
  readonly folder: string;
  readonly author: Author;
  readonly committer: Author;
  readonly message: string;
  readonly signal: AbortSignal;
}

const timeoutMs = 30_000;
const defaultMessage = 'Change the configuration';

/** Returns the commit's id; undefined when the change has no effect. The change has already been checked. */
export async function makeCommit(
  git: Git,
  change: Change,
  options: CommitOptions,
): Promise<string | undefined> {
  const { parent, folder, committer, signal } = options;
  const index = join(options.indexFolder, `index-${randomUUID()}`);
  const run = async (
    args: readonly string[],
    input: string | Iterable<string> = '',
    more: Record<string, string> = {},
  ) => {
    const environment = { GIT_INDEX_FILE: index, ...more };
    return (await git.run(args, { timeoutMs, input, environment, signal })).toString().trim();
  };
  try {
    await run(['read-tree', parent]);
    const lines: string[] = [];
    const prefix = folder === '' ? '' : `${folder}/`;
    // Deletions first: a folder may replace a file of the same name.
    for (const path of change.delete)
      lines.push(`0 ${'0'.repeat(parent.length)}\t${prefix}${path}\0`);
    const blobs = await run(['fast-import', '--quiet', '--done'], toBlobs(change.put));
    for (const [index, blob] of blobs.split('\n').entries()) {
      const file = change.put[index];
      if (file !== undefined) lines.push(`100644 ${blob}\t${prefix}${file.path}\0`);
    }
    await run(['update-index', '-z', '--index-info'], lines.join(''));
    // Large files of other folders are not in the copy.
    const tree = await run(['write-tree', '--missing-ok']);
    if (tree === (await resolveObject(git, `${parent}^{tree}`, signal))) return undefined;
    const author = toPerson(options.author, committer);
    return await run(['commit-tree', tree, '-p', parent, '-F', '-'], toMessage(options.message), {
      GIT_AUTHOR_NAME: author.name,
      GIT_AUTHOR_EMAIL: author.email,
      GIT_COMMITTER_NAME: committer.name,
      GIT_COMMITTER_EMAIL: committer.email,
    });
  } finally {
    await rm(index, { force: true });
    await rm(`${index}.lock`, { force: true });
  }
}

/** Input for fast-import, which stores all files in one process, and prints their ids, one per line. */
function* toBlobs(files: readonly StoredFile[]): Generator<string, void> {
  for (const { text } of files) {
    yield `blob\nmark :1\ndata ${Buffer.byteLength(text)}\n`;
    yield text;
    yield '\nget-mark :1\n';
  }
  yield 'done\n';
}

/** Git refuses an author without a name; an address may be empty. */
function toPerson({ name, email }: Author, otherwise: Author): Author {
  return { name: clean(name) || otherwise.name, email: clean(email) };
}

/** Removes characters that would end the field or the line in a commit. */
function clean(text: string): string {
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}<>]/gu, '')
    .trim()
    .slice(0, 256);
}

function toMessage(text: string): string {
  const message = text.toWellFormed().replaceAll('\0', '').trim();
  return `${message === '' ? defaultMessage : message}\n`;
}
