// Conditional requests (RFC 9110, section 13): a tag for the representation sent, and the tags that a client sends
// back.
import { createHash } from 'node:crypto';
import type { Controller, Handler } from '../controller.ts';
import { HttpError } from '../errors.ts';
import {
  type Around,
  isBuffered,
  type ResponseLike,
  type RoutedAnswer,
} from '../request/request.ts';
import { SurroundedAnswer } from './around.ts';

const conditions = ['if-match', 'if-none-match', 'if-unmodified-since', 'if-modified-since'];

export function isConditional(headers: Headers): boolean {
  return conditions.some((name) => headers.has(name));
}

/** Adds the tag to an answer to GET or HEAD: the one that the method has set, else a hash of a complete body. Answers
 * 304 or 412 if the client's conditions require it. Answers with a status other than 200 are returned unchanged. */
export const tagged: Around = async (next, { headers: asked }) => {
  const answer = await next();
  if (answer.status !== 200) return answer;
  setEntityTag(answer);
  const outcome = evaluate('read', asked, answer.headers);
  if (outcome === 'failed') throw preconditionFailed();
  if (outcome === 'proceed') return answer;
  const etag = answer.headers.get('etag');
  const given = tagsOf(asked.get('if-none-match')).find((tag) => withoutCoding(tag) === etag);
  if (given !== undefined) answer.headers.set('etag', given);
  answer.status = 304;
  answer.body = undefined;
  return answer;
};

/** The given method, whose answer a browser can store if it revalidates it before each use. */
export function withRevalidation(handler: Handler): Handler {
  return function (this: Controller, ...args: unknown[]) {
    this.response.headers.set('cache-control', 'private, no-cache');
    return handler.apply(this, args);
  };
}

/** Checks the conditions before an unsafe method is called. Rejects with 412. `read`: the current answer to GET;
 * undefined if there is no representation. */
export async function refuseUnmet(
  request: Headers,
  read: () => Promise<ResponseLike | undefined>,
): Promise<void> {
  const response = await read();
  const current = response && response.status < 300 ? new SurroundedAnswer(response) : undefined;
  if (current !== undefined) setEntityTag(current);
  current?.end();
  if (evaluate('change', request, current?.headers) === 'failed') throw preconditionFailed();
}

function preconditionFailed(): HttpError {
  return new HttpError(412, { detail: 'the resource is not as the request requires' });
}

function setEntityTag({ headers, body }: RoutedAnswer): void {
  if (headers.has('etag') || body === undefined || !isBuffered(body)) return;
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 27);
  headers.set('etag', `"${hash}"`);
}

/** Evaluates the conditions in the order of section 13.2.2. `current`: the headers of the current representation. */
function evaluate(
  kind: 'read' | 'change',
  request: Headers,
  current: Headers | undefined,
): 'proceed' | 'unchanged' | 'failed' {
  const match = request.get('if-match');
  const unmodifiedSince = toTime(request.get('if-unmodified-since'));
  const modifiedAt = toTime(current?.get('last-modified'));
  if (match !== null) {
    if (!names(match, current, true)) return 'failed';
  } else if (modifiedAt > unmodifiedSince) return 'failed';
  const noneMatch = request.get('if-none-match');
  if (noneMatch !== null) {
    if (!names(noneMatch, current, false)) return 'proceed';
    return kind === 'read' ? 'unchanged' : 'failed';
  }
  const modifiedSince = toTime(request.get('if-modified-since'));
  return kind === 'read' && modifiedAt <= modifiedSince ? 'unchanged' : 'proceed';
}

/** A strong comparison, of exact bytes, fails for a weak tag. */
function names(list: string, current: Headers | undefined, isStrong: boolean): boolean {
  if (current === undefined) return false;
  if (list.trim() === '*') return true;
  const etag = current.get('etag') ?? 'W/';
  if (isStrong && etag.startsWith('W/')) return false;
  const toOpaque = (tag: string) => (isStrong ? tag : tag.replace(/^W\//, ''));
  const tags = tagsOf(list).flatMap((tag) => [tag, withoutCoding(tag)]);
  return tags.some((tag) => toOpaque(tag) === toOpaque(etag));
}

function tagsOf(list: string | null): readonly string[] {
  return list?.match(/(?:W\/)?"[^"]*"/g) ?? [];
}

/** A strong tag identifies exact bytes (RFC 9110, section 8.8.3.3), so a compressed body has a different one, which
 * clients return for the representation that it was compressed from. */
export function withCoding(tag: string, coding: string): string {
  return tag.startsWith('"') ? tag.replace(/"$/, `-${coding}"`) : tag;
}

function withoutCoding(tag: string): string {
  return tag.replace(/-(?:br|gzip)"$/, '"');
}

/** The forms of RFC 9110, section 5.6.7. The last one names no time zone, and is UTC too. */
const dateForm =
  /^(?:\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT|\w{6,9}, \d\d-\w{3}-\d\d [\d:]{8} GMT|(\w{3} \w{3} [ \d]\d [\d:]{8} \d{4}))$/;

/** NaN, which compares false with everything, if that is no date of HTTP. */
export function toTime(date: string | null | undefined): number {
  const [form, withoutZone] = dateForm.exec(date ?? '') ?? [];
  return Date.parse(withoutZone === undefined ? String(form) : `${withoutZone} GMT`);
}
