// Answers that a client may keep: a weak tag of what is sent, and 304 to who has it already.
import { createHash } from 'node:crypto';
import type { ResponseLike } from '../request/request.ts';

/** Of a whole answer with status 200; any other is returned as it is. A tag that the method has set stays. */
export function withEntityTag(answer: ResponseLike, ifNoneMatch: string | null): ResponseLike {
  const { status, headers, body } = answer;
  if (status !== 200 || !(typeof body === 'string' || body instanceof Uint8Array)) return answer;
  const at = headers.indexOf('etag');
  const given = at >= 0 && at % 2 === 0 ? headers[at + 1] : undefined;
  const tag = given ?? `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
  const tagged = given === undefined ? [...headers, 'etag', tag] : headers;
  if (!matches(ifNoneMatch, tag)) return { ...answer, headers: tagged };
  const kept = tagged.flatMap((name, index) =>
    index % 2 === 0 && name !== 'content-type' && name !== 'content-length'
      ? [name, tagged[index + 1] ?? '']
      : [],
  );
  return { ...answer, status: 304, headers: kept, body: undefined };
}

/** Weakly: for reading, tags that differ in `W/` alone are the same. */
function matches(ifNoneMatch: string | null, tag: string): boolean {
  if (ifNoneMatch === null) return false;
  if (ifNoneMatch.trim() === '*') return true;
  const strong = tag.replace(/^W\//, '');
  return ifNoneMatch.split(',').some((one) => one.trim().replace(/^W\//, '') === strong);
}
