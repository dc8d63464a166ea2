// Revisions kept on disk, for rollback and for a start without the store.
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { AppError, errorText } from '../../shared/errors.ts';
import { codeOf } from '../../shared/rules-directory.ts';
import { writeFileAtomically } from './atomic-file.ts';
import type { Revision } from './revision.ts';

/** The rules may tell about a company's business: they are nobody else's to read. */
const mode = 0o600;
const format = 1;

interface Content {
  readonly format: typeof format;
  /** Of the revision as JSON: tells what a full disk or a person left behind. */
  readonly sha256: string;
  /** The store that the revision is from. */
  readonly store: string;
  readonly revision: Revision;
}

/** `store` is the description of the store that the revision is from. Rejects with what the file
 * system says. */
export async function writeRevisionFile(
  path: string,
  store: string,
  revision: Revision,
): Promise<void> {
  const content: Content = { format, sha256: toSum(revision), store, revision };
  await writeFileAtomically(path, JSON.stringify(content), mode);
}

/** Undefined when there is none, or one of another store. Rejects with an AppError `store` that says
 * what is wrong with it. */
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
  } catch (error) {
    throw new AppError('store', `${path} is not a stored revision`, { cause: error });
  }
  const { revision } = content ?? {};
  if (content?.format !== format || !revision || content.sha256 !== toSum(revision)) {
    throw new AppError('store', `${path} is not a stored revision, or it was changed`);
  }
  return content.store === store ? revision : undefined;
}

function toSum(revision: Revision): string {
  return createHash('sha256').update(JSON.stringify(revision)).digest('hex');
}
