// A revision in the format of the admin API.
import Type from 'typebox';
import { orNull, time, toNulls, toTime } from '../api-shape.ts';
import type { RevisionInfo } from '../store/revision.ts';
import { shortestRevisionPrefix } from '../store/store.ts';

export const revisionFields = {
  id: Type.String(),
  at: time,
  author: orNull(Type.String()),
  message: orNull(Type.String()),
};
export const revisionJson = Type.Object(revisionFields, { title: 'Revision' });
export type RevisionJson = Type.Static<typeof revisionJson>;

export function toRevisionJson({ id, atMs, author, message }: RevisionInfo): RevisionJson {
  return toNulls({ id, at: toTime(atMs), author, message });
}

/** A hint if a revision is not found; '' when `id` is long enough for a prefix. */
export function toPrefixHint(id: string): string {
  return id.length < shortestRevisionPrefix
    ? `; of an abbreviated revision at least ${shortestRevisionPrefix} characters are needed`
    : '';
}
