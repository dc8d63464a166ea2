// A method's return value as a response: JSON unless the value is bytes, a file or a stream, or the
// method has named another media type (behaviour: results).
import type { FileHandle } from 'node:fs/promises';
import { isXml, mediaTypeOfName, parseMediaType } from '../request/media-type.ts';
import type { ResponseLike } from '../request/request.ts';
import type { LazyDraft } from '../request/routed-request.ts';
import type { Xml } from '../xml/xml.ts';
import { toHeaderList, toWholeHeaders } from './header-list.ts';
import { cancelStream, isNodeStream, toChunks } from './stream.ts';

/** How values become texts. */
export interface Writing {
  /** How a text is sent where the method has named no type: as JSON, or raw as this type. */
  readonly stringReturn: 'application/json' | 'text/html';
  /** Where XML is allowed; `asked` is whether a value is sent so when its method has named no type. */
  readonly xml: (Pick<Xml, 'writeXml'> & { readonly asked: boolean }) | undefined;
}

const withoutBody: ReadonlySet<number> = new Set([204, 205, 304]);
const jsonType = 'application/json;charset=UTF-8';

/** Throws where the value has no JSON text: bigint, cycles, functions. What needs no waiting is answered at once. */
export function encodeResult(
  value: unknown,
  draft: LazyDraft,
  requestId: string,
  writing: Writing,
): ResponseLike | Promise<ResponseLike> {
  const { status = 200, mediaType } = draft;
  if (value === undefined || value === null)
    return toBodiless(draft.status ?? 204, draft, requestId);
  if (mediaType !== undefined || writing.xml !== undefined || !isPlain(value)) {
    return encodeOther(value, status, draft, requestId, writing);
  }
  if (withoutBody.has(status)) return toBodiless(status, draft, requestId);
  const body = JSON.stringify(value);
  const bytes = Buffer.byteLength(body);
  return { status, headers: toWholeHeaders(jsonType, bytes, draft.setHeaders, requestId), body };
}

/** Whether it is a list or an object of which nothing else is to be found out. */
function isPlain(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Array.prototype) return true;
  if (prototype !== Object.prototype && prototype !== null) return false;
  return !(Symbol.iterator in value || Symbol.asyncIterator in value);
}

async function encodeOther(
  value: unknown,
  status: number,
  draft: LazyDraft,
  requestId: string,
  writing: Writing,
): Promise<ResponseLike> {
  if (value instanceof Response) return fromResponse(value, draft, requestId);
  if (withoutBody.has(status)) {
    await cancelStream((await toBytes(value))?.body);
    return toBodiless(status, draft, requestId);
  }
  const { mediaType, setHeaders } = draft;
  const { body, type, length } =
    (await toBytes(value)) ?? (await toText(value, mediaType, writing));
  const chosen = mediaType === undefined ? type : checkedType(mediaType);
  const headers =
    length === undefined
      ? toHeaderList(['content-type', chosen], setHeaders, requestId)
      : toWholeHeaders(chosen, length, setHeaders, requestId);
  return { status, headers, body };
}

function toBodiless(status: number, draft: LazyDraft, requestId: string): ResponseLike {
  return { status, headers: toHeaderList([], draft.setHeaders, requestId), body: undefined };
}

/** Throws where it cannot be the value of a header. */
function checkedType(mediaType: string): string {
  const type = withCharset(mediaType);
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(type)) throw new TypeError('a media type is one line');
  return type;
}

interface Encoded {
  readonly body: string | Uint8Array | AsyncIterable<Uint8Array>;
  readonly type: string;
  readonly length?: number;
}

/** Undefined for values that become text. */
async function toBytes(value: unknown): Promise<Encoded | undefined> {
  const type = 'application/octet-stream';
  if (value instanceof ArrayBuffer) return sized(new Uint8Array(value), type);
  if (ArrayBuffer.isView(value)) {
    return sized(new Uint8Array(value.buffer, value.byteOffset, value.byteLength), type);
  }
  if (value instanceof Blob) {
    const name = value instanceof File ? value.name : '';
    const named = value.type === '' ? (mediaTypeOfName(name) ?? type) : value.type;
    return { body: value.stream(), type: withCharset(named), length: value.size };
  }
  if (value instanceof ReadableStream) return { body: value as ReadableStream<Uint8Array>, type };
  if (isNodeStream(value)) {
    const path = 'path' in value ? String(value.path) : '';
    return { body: toChunks(value), type: withCharset(mediaTypeOfName(path) ?? type) };
  }
  if (isFileHandle(value)) return { ...(await readFile(value)), type };
  return undefined;
}

/** By what it can do: Node does not export the class. */
function isFileHandle(value: unknown): value is FileHandle {
  return (
    typeof value === 'object' && value !== null && 'fd' in value && 'createReadStream' in value
  );
}

/** The whole file as long as it is now; it may grow while it is sent. The stream closes it. */
async function readFile(file: FileHandle): Promise<Omit<Encoded, 'type'>> {
  try {
    const stat = await file.stat();
    // What has no length (a pipe, a file of the kernel) is read to its end.
    if (!stat.isFile() || stat.size === 0) return { body: toChunks(file.createReadStream()) };
    const body = toChunks(file.createReadStream({ start: 0, end: stat.size - 1 }));
    return { body, length: stat.size };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function toText(
  value: unknown,
  mediaType: string | undefined,
  { stringReturn, xml }: Writing,
): Promise<Encoded> {
  const isText = typeof value === 'string';
  if (
    xml !== undefined &&
    (mediaType === undefined ? xml.asked : !isText && isXmlType(mediaType))
  ) {
    const whole = isGenerator(value) ? await collect(value) : value;
    return toWhole(xml.writeXml(whole), withCharset(mediaType ?? 'application/xml'));
  }
  const type = mediaType ?? (isText ? stringReturn : 'application/json');
  if (isText && !/json/i.test(type)) return toWhole(value, withCharset(type));
  const text = JSON.stringify(isGenerator(value) ? await collect(value) : value) as
    | string
    | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} has no JSON text`);
  return toWhole(text, withCharset(type));
}

function toWhole(body: string, type: string): Encoded {
  return { body, type, length: Buffer.byteLength(body) };
}

function sized(body: Uint8Array, type: string): Encoded {
  return { body, type, length: body.byteLength };
}

function isXmlType(mediaType: string): boolean {
  return isXml(parseMediaType(mediaType)?.essence ?? '');
}

function withCharset(type: string): string {
  const isText = /^(?:text\/|application\/(?:[^;]*[+/])?(?:json|xml)\b)/i.test(type);
  return isText && !/;\s*charset=/i.test(type) ? `${type};charset=UTF-8` : type;
}

function fromResponse(
  response: Response,
  { setHeaders }: LazyDraft,
  requestId: string,
): ResponseLike {
  const headers = new Headers(setHeaders);
  for (const [name, value] of response.headers) {
    if (name === 'set-cookie') headers.append(name, value);
    else headers.set(name, value);
  }
  const { status } = response;
  return {
    status,
    headers: toHeaderList([], headers, requestId),
    body: response.body ?? undefined,
  };
}

/** What a generator function returns: an iterator of values, not a collection. */
function isGenerator(value: unknown): value is AsyncIterable<unknown> | Iterable<unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    (Symbol.asyncIterator in value || Symbol.iterator in value) &&
    'next' in value &&
    typeof value.next === 'function'
  );
}

function collect(values: AsyncIterable<unknown> | Iterable<unknown>): Promise<unknown[]> {
  return Array.fromAsync(values);
}
