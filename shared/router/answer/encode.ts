// A method's return value as a response: JSON unless the value is bytes, a file or a stream, or the
// method has named another media type (behaviour: results).
import type { FileHandle } from 'node:fs/promises';
import { isXml, mediaTypeOfName, parseMediaType } from '../request/media-type.ts';
import type { ResponseDraft, ResponseLike } from '../request/request.ts';
import type { Xml } from '../xml/xml.ts';
import { cancelStream, isNodeStream, toChunks } from './stream.ts';

export interface EncodeOptions {
  /** How a text is sent where the method has named no type: as JSON, or raw as this type. */
  readonly stringReturn: 'application/json' | 'text/html';
  /** Where XML is allowed; `asked` is whether a value is sent so when its method has named no type. */
  readonly xml?: Pick<Xml, 'writeXml'> & { readonly asked: boolean };
}

const encoder = new TextEncoder();
const withoutBody: ReadonlySet<number> = new Set([204, 205, 304]);

/** Throws where the value has no JSON text: bigint, cycles, functions. */
export async function encodeResult(
  value: unknown,
  draft: ResponseDraft,
  options: EncodeOptions,
): Promise<ResponseLike> {
  if (value instanceof Response) return fromResponse(value, draft);
  const headers = new Headers(draft.headers);
  if (value === undefined || value === null) {
    return { status: draft.status ?? 204, headers, body: undefined };
  }
  const status = draft.status ?? 200;
  if (withoutBody.has(status)) {
    await cancelStream((await toBytes(value))?.body);
    return { status, headers, body: undefined };
  }
  const bytes = await toBytes(value);
  const { body, type, length } = bytes ?? (await toText(value, draft.mediaType, options));
  headers.set('content-type', draft.mediaType === undefined ? type : withCharset(draft.mediaType));
  if (length !== undefined) headers.set('content-length', String(length));
  return { status, headers, body };
}

interface Encoded {
  readonly body: Uint8Array | AsyncIterable<Uint8Array>;
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
    // What tells no length (a pipe, a file of the kernel) is read to its end.
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
  { stringReturn, xml }: EncodeOptions,
): Promise<Encoded> {
  const isText = typeof value === 'string';
  if (
    xml !== undefined &&
    (mediaType === undefined ? xml.asked : !isText && isXmlType(mediaType))
  ) {
    const whole = isGenerator(value) ? await collect(value) : value;
    return sized(encoder.encode(xml.writeXml(whole)), withCharset(mediaType ?? 'application/xml'));
  }
  const type = mediaType ?? (isText ? stringReturn : 'application/json');
  if (isText && !/json/i.test(type)) return sized(encoder.encode(value), withCharset(type));
  const text = JSON.stringify(isGenerator(value) ? await collect(value) : value) as
    | string
    | undefined;
  if (text === undefined) throw new TypeError(`a ${typeof value} has no JSON text`);
  return sized(encoder.encode(text), withCharset(type));
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

async function fromResponse(response: Response, draft: ResponseDraft): Promise<ResponseLike> {
  const headers = new Headers(draft.headers);
  for (const [name, value] of response.headers) {
    if (name === 'set-cookie') headers.append(name, value);
    else headers.set(name, value);
  }
  return { status: response.status, headers, body: response.body ?? undefined };
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
