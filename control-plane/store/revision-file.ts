// Revisions kept on disk, for rollback and for a start without the store.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { AppError, errorText } from '../../shared/errors.ts';
import { codeOf } from '../../shared/rules-directory.ts';
import { writeFileAtomically } from './atomic-file.ts';
import { toOtherVersion } from './kept-version.ts';
import type { Revision } from './revision.ts';
import { setAside } from './set-aside.ts';

/** Readable for the owner only: rules may reveal a company's business. */
const mode = 0o600;
const format = 1;

interface Content {
  readonly format: typeof format;
  /** Hash of the revision as JSON, to detect damage by a full disk or a person. */
  readonly sha256: string;
  /** The description of the revision's store. */
  readonly store: string;
  readonly revision: Revision;
}

/**
 * `store` is the description of the store that the revision is from. Rejects with the file system's error.
 */
export async function writeRevisionFile(
  path: string,
  store: string,
  revision: Revision,
): Promise<void> {
  const content: Content = { format, sha256: toSum(revision), store, revision };
  await writeFileAtomically(path, JSON.stringify(content), mode);
}

/** Undefined when there is none, or one of another store. Rejects with an AppError `store` that says
 * what is wrong with it: one that is damaged is set aside, one of another version stays for the program that wrote it. */
export async function readRevisionFile(path: string, store: string): Promise<Revision | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new AppError('store', `${path} cannot be read: ${errorText(error)}`, { cause: error });
  }
  let content: Partial<Content> | null;
  try {
    content = JSON.parse(text);
  } catch {
    content = null;
  }
  const other = toOtherVersion(content, [format]);
  if (other !== undefined) throw new AppError('store', `${path} is of ${other}`);
  const { revision } = content ?? {};
  if (content?.format !== format || !revision || content.sha256 !== toSum(revision)) {
    const where = await setAside(path);
    throw new AppError('store', `${path} is not a stored revision, or it was changed; ${where}`);
  }
  return content.store === store ? revision : undefined;
}

function toSum(revision: Revision): string {
  return createHash('sha256').update(JSON.stringify(revision)).digest('hex');
}
