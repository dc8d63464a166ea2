// A method's return value as a response: JSON unless the value is bytes, a file or a stream, or the
// method has named another media type (behaviour: results).
import type { FileHandle } from 'node:fs/promises';
import { HttpError, Redirect, Stop } from '../errors.ts';
import { type MaybePromise, then } from '../maybe-promise.ts';
import { kindOf } from '../near-names.ts';
import {
  ListedHeaders,
  ofTheServer,
  refuseOtherLength,
  toHeaderList,
} from '../request/listed-headers.ts';
import { isXml, mediaTypeOfName, parseMediaType } from '../request/media-type.ts';
import {
  type LazyDraft,
  type LazyRequest,
  type ResponseLike,
  withoutBody,
} from '../request/request.ts';
import { toJsonText } from './json-text.ts';
import { cancelStream, isNodeStream, toBody } from './stream.ts';

/** How values become texts. */
export interface Writing {
  /** How a text is sent if the method has set no type: as JSON, or raw as this type. */
  readonly stringReturn: 'application/json' | 'text/html';
  /** Set if XML is allowed; `asked` is whether a value is sent as XML if its method has set no type. */
  readonly xml: { readonly asked: boolean; writeXml(value: unknown): string } | undefined;
  /** Filters by status; a value with any other status is not sent. */
  readonly filters?: ReadonlyMap<number, (value: unknown) => unknown> | undefined;
}

const jsonType = 'application/json;charset=UTF-8';

/** Throws if the value has no JSON text: bigint, cycles, functions. Returns synchronously if nothing must be waited
 * for. */
export function encodeResult(
  value: unknown,
  draft: LazyDraft,
  request: LazyRequest,
  writing: Writing,
): MaybePromise<ResponseLike> {
  const { status = 200, setHeaders } = draft;
  if (value === undefined || value === null) {
    return toBodiless(draft.status ?? 204, setHeaders, request);
  }
  if (value instanceof Response) {
    const answer = fromResponse(value, setHeaders, request.id);
    const isOther = draft.status !== undefined && draft.status !== answer.status;
    if (isOther || writing.filters !== undefined) {
      cancelStream(answer.body);
      throw isOther ? hasTwoStatuses(draft.status, answer.status) : hasNoFields();
    }
    if (answer.body !== undefined) return answer;
    return toBodiless(answer.status, new ListedHeaders(answer.headers), request);
  }
  const encoded = toBytes(value);
  try {
    if (encoded !== undefined && writing.filters !== undefined) throw hasNoFields();
    if (withoutBody.has(status)) {
      cancelStream(encoded?.body);
      return toBodiless(status, setHeaders, request);
    }
    if (encoded === undefined && isGenerator(value)) {
      // The method has run when the generator ends, and may have set status and headers until then.
      return then(draft, collect(value, request), (_draft, list) =>
        encodeResult(list, draft, request, writing),
      );
    }
    const { chosenType } = draft;
    const { body, type, length } =
      encoded ?? toText(filtered(value, status, writing), chosenType, writing);
    const chosen = chosenType === undefined ? type : checkedType(chosenType, body);
    const own = ['content-type', chosen];
    if (length !== undefined) own.push('content-length', String(length));
    return { status, headers: toHeaderList(own, setHeaders, request.id), body };
  } catch (error) {
    cancelStream(encoded?.body);
    throw error;
  }
}

function hasTwoStatuses(set: number | undefined, returned: number): TypeError {
  return new TypeError(`the method has set ${set}, and returned a Response with ${returned}`);
}

function hasNoFields(): TypeError {
  return new TypeError('a method with a filter returns a value with fields, no bytes or Response');
}

/** Applies to the value in its JSON form. */
function filtered(value: unknown, status: number, { filters }: Writing): unknown {
  if (filters === undefined) return value;
  const filter = filters.get(status);
  if (filter === undefined) throw new TypeError(`returns declares nothing for ${status}`);
  return filter(JSON.parse(toJsonText(value)));
}

/** Answers a method that ended with `Stop` or `Redirect`, with the headers that it has set: a login sets its cookie,
 * and then redirects. Rethrows any other error. */
export function encodeEarly(
  error: unknown,
  draft: LazyDraft,
  request: LazyRequest,
  writing: Writing,
): MaybePromise<ResponseLike> {
  if (error instanceof Redirect) {
    const { status, location } = error;
    if (status < 300 || status > 399) throw new RangeError(`${status} does not redirect`);
    draft.headers.set('location', location);
    return toBodiless(status, draft.headers, request);
  }
  if (isOfGone(error, request)) throw new HttpError(499, { detail: 'the client has disconnected' });
  if (!(error instanceof Stop)) throw error;
  draft.status = error.status;
  return encodeResult(error.value, draft, request, writing);
}

/** Whether code stopped waiting because its client has disconnected, which is not a failure. */
export function isOfGone(error: unknown, request: LazyRequest): boolean {
  return error instanceof Error && error.name === 'AbortError' && request.signal.aborted;
}

/** Only an answer to HEAD, and 304, have a length without a body (RFC 9110, section 8.6). */
function toBodiless(
  status: number,
  setHeaders: Headers | undefined,
  { id, method }: LazyRequest,
): ResponseLike {
  const isEmpty = method !== 'HEAD' && status !== 304;
  if (isEmpty) refuseOtherLength(setHeaders?.get('content-length') ?? '0', '0');
  const own = isEmpty ? ['content-length', '0'] : [];
  return { status, headers: toHeaderList(own, setHeaders, id), body: undefined };
}

/** Throws if it is not a media type, and for a charset other than UTF-8, in which texts are sent. */
function checkedType(mediaType: string, body: Encoded['body']): string {
  const type = withCharset(mediaType);
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(type)) throw new TypeError('a media type is one line');
  if (parseMediaType(type) === undefined) {
    throw new TypeError(`the content type ${JSON.stringify(type)} is no media type`);
  }
  const [, charset = 'utf-8'] = /;\s*charset="?([^\s";]+)/i.exec(type) ?? [];
  if (typeof body === 'string' && !/^(?:utf-?8|us-ascii)$/i.test(charset)) {
    throw new TypeError(`the content type ${type} is not that of a text, which is sent as UTF-8`);
  }
  return type;
}

interface Encoded {
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly type: string;
  readonly length?: number;
}

/** Undefined for values that are sent as text. */
function toBytes(value: unknown): Encoded | undefined {
  if (typeof value !== 'object' || Array.isArray(value)) return undefined;
  if (Object.getPrototypeOf(value) === Object.prototype) return undefined;
  const type = 'application/octet-stream';
  const body = bytesOf(value);
  if (body !== undefined) return { body, type, length: body.byteLength };
  if (value instanceof Blob) {
    const name = value instanceof File ? value.name : '';
    const named = value.type === '' ? (mediaTypeOfName(name) ?? type) : value.type;
    return { body: toBody(value.stream()), type: withCharset(named), length: value.size };
  }
  if (value instanceof ReadableStream) {
    return { body: toBody(value as ReadableStream<Uint8Array>), type };
  }
  if (isNodeStream(value)) {
    const path = 'path' in value ? String(value.path) : '';
    const body = toBody(value as AsyncIterable<Uint8Array>);
    return { body, type: withCharset(mediaTypeOfName(path) ?? type) };
  }
  // The stream closes the file.
  return isOpenFile(value) ? toBytes(value.createReadStream()) : undefined;
}

/** Node does not export the class. */
export function isOpenFile(value: unknown): value is FileHandle {
  return (
    typeof value === 'object' && value !== null && 'fd' in value && 'createReadStream' in value
  );
}

function toText(
  value: unknown,
  mediaType: string | undefined,
  { stringReturn, xml }: Writing,
): Encoded {
  const isText = typeof value === 'string';
  if (
    xml !== undefined &&
    (mediaType === undefined ? xml.asked : !isText && isXmlType(mediaType))
  ) {
    return toEncoded(xml.writeXml(value), withCharset(mediaType ?? 'application/xml'));
  }
  const type = mediaType ?? (isText ? stringReturn : jsonType);
  const isJson = /json/i.test(type);
  if (isText && !isJson) return toEncoded(value, withCharset(type));
  if (!isJson && typeof value === 'object') {
    throw new TypeError(
      `${kindOf(value)} is sent as JSON, not as ${type}; return a text, bytes, or a stream such as Readable.from(texts)`,
    );
  }
  return toEncoded(toJsonText(value), type === jsonType ? type : withCharset(type));
}

function toEncoded(body: string, type: string): Encoded {
  return { body, type, length: lengthOf(body) };
}

const encoder = new TextEncoder();
/** Overwritten by each text. */
const scratch = new Uint8Array(64 * 1024);

/** Bytes of the text as UTF-8. Encoding most texts costs an eighth of counting, which reads one character after the
 * other. */
function lengthOf(text: string): number {
  const { read, written } = encoder.encodeInto(text, scratch);
  return read === text.length ? written : Buffer.byteLength(text);
}

/** Undefined if the value is not bytes. */
export function bytesOf(value: unknown): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (!ArrayBuffer.isView(value)) return undefined;
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

function isXmlType(mediaType: string): boolean {
  return isXml(parseMediaType(mediaType)?.essence ?? '');
}

function withCharset(type: string): string {
  const isText = /^(?:text\/|application\/(?:[^;]*[+/])?(?:json|xml)\b)/i.test(type);
  return isText && !/;\s*charset=/i.test(type) ? `${type};charset=UTF-8` : type;
}

/** Headers of one connection, and those of a body that `fetch` has already decompressed. */
const hopByHop = ['connection', 'keep-alive', 'te', 'upgrade'];
const ofCompressed = ['content-encoding', 'content-length'];

/** `setHeaders` override the response's own headers of the same names. */
export function fromResponse(
  response: Response,
  setHeaders: Headers | undefined,
  requestId: string,
): ResponseLike {
  const { status } = response;
  if (response.bodyUsed)
    throw new TypeError('the method returned a Response whose body was already read');
  const body = response.body === null ? undefined : toBody(response.body);
  try {
    return { status, headers: toHeaderList([], headersOf(response, setHeaders), requestId), body };
  } catch (error) {
    cancelStream(body);
    throw error;
  }
}

function headersOf(response: Response, setHeaders: Headers | undefined): ListedHeaders {
  const headers = new ListedHeaders([...(setHeaders ?? [])].flat());
  // Only an answer from `fetch` has a URL.
  const isDecoded = response.url !== '' && response.headers.has('content-encoding');
  const dropped = response.url === '' ? [] : isDecoded ? [...hopByHop, ...ofCompressed] : hopByHop;
  for (const [name, value] of response.headers) {
    if (dropped.includes(name) || ofTheServer.includes(name)) continue;
    if (name === 'set-cookie') headers.append(name, value);
    else headers.set(name, value);
  }
  return headers;
}

/** The result of a generator function, or another async iterable or iterator, but not a collection. */
export function isGenerator(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    (Symbol.asyncIterator in value ||
      (Symbol.iterator in value && 'next' in value && typeof value.next === 'function'))
  );
}

/** A reader that disconnects ends the generator, at its next value or when it waits with the request's signal. */
async function collect(
  values: AsyncIterable<unknown> | Iterable<unknown>,
  { signal }: LazyRequest,
): Promise<unknown[]> {
  if (!(Symbol.asyncIterator in values)) return Array.from(values);
  const list: unknown[] = [];
  for await (const value of values) {
    signal.throwIfAborted();
    list.push(value);
  }
  return list;
}
