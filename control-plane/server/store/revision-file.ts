// Revisions saved on disk, for rollbacks and for a start without the store.
import { readFile } from 'node:fs/promises';
import { AppError, errorText } from '../../../shared/errors.ts';
import { runInSlices } from '../../../shared/in-slices.ts';
import { codeOf } from '../../../shared/rules-directory.ts';
import { writeFileAtomically } from './atomic-file.ts';
import { toOtherVersion } from './format-version.ts';
import { toJsonDigest } from './json-digest.ts';
import { readingJson, writingJson } from './json-in-slices.ts';
import type { Revision } from './revision.ts';
import { setAside } from './set-aside.ts';

/** Readable only by the owner: rules may reveal business data. */
const mode = 0o600;
const format = 1;
/** A problem of a file is not nested deeper. */
const maxDepth = 10;

interface Content {
  readonly format: typeof format;
  /** Hash of the revision as JSON, to detect damage by a full disk or a manual edit. */
  readonly sha256: string;
  /** The description of the revision's store. */
  readonly store: string;
  readonly revision: Revision;
}

/** `store` is the description of the revision's store. Rejects with the file system's error. */
export async function writeRevisionFile(
  path: string,
  store: string,
  revision: Revision,
): Promise<void> {
  const sha256 = await toJsonDigest([revision]);
  const content: Content = { format, sha256, store, revision };
  await writeFileAtomically(path, writingJson(content), mode);
}

/** Undefined when the file is missing or belongs to another store. Rejects with an AppError `store` that names the
 * problem: a damaged file is set aside, a file of another version stays for the program that wrote it. */
export async function readRevisionFile(path: string, store: string): Promise<Revision | undefined> {
  let bytes: Buffer;
  try {
    bytes = await readFile(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new AppError('store', `${path} cannot be read: ${errorText(error)}`, { cause: error });
  }
  const content = await runInSlices(readingJson(bytes, { maxDepth })).then(
    (read) => read as Partial<Content> | null,
    () => null,
  );
  const other = toOtherVersion(content, [format]);
  if (other !== undefined) throw new AppError('store', `${path} is of ${other}`);
  const { revision } = content ?? {};
  const isComplete = content?.format === format && revision !== undefined;
  if (!isComplete || content.sha256 !== (await toJsonDigest([revision]))) {
    const where = await setAside(path);
    throw new AppError('store', `${path} is not a stored revision, or it was changed; ${where}`);
  }
  return content.store === store ? revision : undefined;
}
