// Conditional requests (RFC 9110, section 13): a tag of what is sent, and what a client reports of the tag that it has.
import { createHash } from 'node:crypto';
import { HttpError } from '../errors.ts';
import { isWhole, type RequestHeaders, type ResponseLike } from '../request/request.ts';
import { cancelStream } from './stream.ts';

/** Of the current representation; null where it has none. */
interface Validators {
  readonly etag: string | null;
  readonly lastModified: string | null;
}

const conditions = ['if-match', 'if-none-match', 'if-unmodified-since', 'if-modified-since'];

export function isConditional(headers: RequestHeaders): boolean {
  return conditions.some((name) => headers.has(name));
}

/** The answer to a GET or HEAD with its tag: one that the method has set, else a hash of a whole body. 304 or 412 where
 * the client's conditions ask for that. Statuses other than 200 are returned as they are. */
export async function toConditional(
  answer: ResponseLike,
  request: RequestHeaders,
): Promise<ResponseLike> {
  if (answer.status !== 200) return answer;
  const tagged = withEntityTag(answer);
  const outcome = evaluate('read', request, validatorsOf(tagged));
  if (outcome === 'proceed') return tagged;
  await cancelStream(tagged.body);
  if (outcome === 'failed') throw preconditionFailed();
  const headers = tagged.headers.flatMap((name, at) =>
    at % 2 === 0 && name !== 'content-type' && name !== 'content-length'
      ? [name, tagged.headers[at + 1] ?? '']
      : [],
  );
  return { ...tagged, status: 304, headers, body: undefined };
}

/** Before an unsafe method is called. Throws 412. `current`: what a GET would be answered now; undefined where there is
 * nothing. */
export function refuseUnmet(request: RequestHeaders, current: ResponseLike | undefined): void {
  const validators = current && validatorsOf(withEntityTag(current));
  if (evaluate('change', request, validators) === 'failed') throw preconditionFailed();
}

function preconditionFailed(): HttpError {
  return new HttpError(412, { detail: 'the resource is not as the request requires' });
}

function withEntityTag(answer: ResponseLike): ResponseLike {
  const { headers, body } = answer;
  if (headerOf(headers, 'etag') !== null || body === undefined || !isWhole(body)) return answer;
  const tag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 27)}"`;
  return { ...answer, headers: [...headers, 'etag', tag] };
}

function validatorsOf({ headers }: ResponseLike): Validators {
  return { etag: headerOf(headers, 'etag'), lastModified: headerOf(headers, 'last-modified') };
}

function headerOf(headers: ResponseLike['headers'], name: string): string | null {
  const at = headers.findIndex((given, index) => index % 2 === 0 && given === name);
  return at < 0 ? null : (headers[at + 1] ?? null);
}

/** In the order of section 13.2.2. */
function evaluate(
  kind: 'read' | 'change',
  request: RequestHeaders,
  current: Validators | undefined,
): 'proceed' | 'unchanged' | 'failed' {
  const match = request.get('if-match');
  const unmodifiedSince = toTime(request.get('if-unmodified-since'));
  const modifiedAt = toTime(current?.lastModified ?? null);
  if (match !== null) {
    if (!names(match, current, isSameStrongly)) return 'failed';
  } else if (modifiedAt > unmodifiedSince) return 'failed';
  const noneMatch = request.get('if-none-match');
  if (noneMatch !== null) {
    if (!names(noneMatch, current, isSameWeakly)) return 'proceed';
    return kind === 'read' ? 'unchanged' : 'failed';
  }
  const modifiedSince = toTime(request.get('if-modified-since'));
  return kind === 'read' && modifiedAt <= modifiedSince ? 'unchanged' : 'proceed';
}

function names(
  list: string,
  current: Validators | undefined,
  isSame: (given: string, current: string) => boolean,
): boolean {
  if (current === undefined) return false;
  if (list.trim() === '*') return true;
  const { etag } = current;
  return etag !== null && (list.match(/(?:W\/)?"[^"]*"/g) ?? []).some((tag) => isSame(tag, etag));
}

function isSameStrongly(given: string, current: string): boolean {
  return given === current && !given.startsWith('W/');
}

function isSameWeakly(given: string, current: string): boolean {
  return given.replace(/^W\//, '') === current.replace(/^W\//, '');
}

/** NaN, which compares with nothing, where there is no date. */
function toTime(date: string | null): number {
  return date === null ? Number.NaN : Date.parse(date);
}
