// A revision in the format of the admin API.
import Type from 'typebox';
import { orNull } from '../or-null.ts';
import type { RevisionInfo } from '../store/revision.ts';
import { shortestRevisionPrefix } from '../store/store.ts';

export const revisionFields = {
  id: Type.String(),
  at: Type.String({ format: 'date-time' }),
  author: orNull(Type.String()),
  message: orNull(Type.String()),
};
export const revisionJson = Type.Object(revisionFields, { title: 'Revision' });
export type RevisionJson = Type.Static<typeof revisionJson>;

export function toRevisionJson({ id, atMs, author, message }: RevisionInfo): RevisionJson {
  return { id, at: toTime(atMs), author: author ?? null, message: message ?? null };
}

/** The end of the year 9999. */
const lastMs = 253_402_300_799_999;

/** A commit, or a record, can be of any time: one that cannot be shown becomes the next that can. */
export function toTime(wallMs: number): string {
  return new Date(Math.max(0, Math.min(wallMs, lastMs))).toISOString();
}

/** A hint if a revision is not found; '' when `id` is long enough for a prefix. */
export function toPrefixHint(id: string): string {
  return id.length < shortestRevisionPrefix
    ? `; of an abbreviated revision at least ${shortestRevisionPrefix} characters are needed`
    : '';
}
