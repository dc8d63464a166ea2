// Reads a body within its size limit and deadline, and parses it by its media type (behaviour: bodies).
import type { BodyArguments } from '../arguments/bind.ts';
import { BadRequest, HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import type { Xml } from '../xml/xml.ts';
import { parseJson } from './json.ts';
import { createKeywords, type Keywords, parseUrlencoded } from './keywords.ts';
import { isJson, isXml, type MediaType, parseMediaType } from './media-type.ts';
import { parseMultipart } from './multipart.ts';
import type { RequestLike } from './request.ts';
import { decodeUtf8 } from './utf8.ts';

/** The kinds of body that an application understands; classes add XML. */
export type BodyKind = 'json' | 'form' | 'multipart' | 'text';

export const bodyKinds: readonly BodyKind[] = ['json', 'form', 'multipart', 'text'];

export interface BodyReader {
  /** Throws 400, 408, 413 and 415. An empty body is nothing, whatever its type. */
  readBody(request: RequestLike, reading: BodyReading): Promise<BodyArguments>;
}

export interface BodyReading {
  /** Whether the method takes a body; otherwise it is read only to see whether it is empty. */
  readonly taken: boolean;
  /** Where XML is allowed. */
  readonly xml: Xml | undefined;
}

/** Bytes of a body that the method does not take: enough for `{}` and the like. */
const maxUntakenBytes = 8 * 1024;

export function createBodyReader(limits: Limits, accepted: readonly BodyKind[]): BodyReader {
  return {
    async readBody({ headers, body }, { taken, xml }) {
      const { bodyBytes, bodyTimeoutMs: timeoutMs } = limits;
      const maxBytes = taken ? bodyBytes : Math.min(bodyBytes, maxUntakenBytes);
      const declared = Number(headers.get('content-length') ?? 0);
      if (declared > maxBytes) throw tooLarge(maxBytes);
      const bytes =
        body === undefined ? Buffer.alloc(0) : await readBytes(body, { maxBytes, timeoutMs });
      if (bytes.length === 0) return nothing();
      const type = parseMediaType(headers.get('content-type') ?? '');
      const kind = type && kindOf(type);
      const encoding = headers.get('content-encoding') ?? 'identity';
      const kinds: readonly string[] = xml === undefined ? accepted : [...accepted, 'xml'];
      if (type === undefined || kind === undefined || !kinds.includes(kind)) {
        throw new HttpError(415, { detail: `a body must be ${kinds.join(', ')}` });
      }
      if (encoding !== 'identity') {
        throw new HttpError(415, { detail: 'a compressed body is not understood' });
      }
      if (kind === 'multipart') return fromForm(await parseMultipart(type, bytes, limits));
      const text = decodeUtf8(bytes);
      if (kind === 'form') return fromForm(parseUrlencoded(text, 'body', limits));
      if (kind === 'text') return { ...nothing(), positionals: [text] };
      return kind === 'json'
        ? fromValue(parseJson(text, limits.jsonDepth), kind, limits)
        : fromValue(xml?.readXml(text, limits), kind, limits);
    },
  };
}

function nothing(): BodyArguments {
  return { keywords: createKeywords(), positionals: [], from: 'json' };
}

function fromForm(keywords: Keywords): BodyArguments {
  return { keywords, positionals: [], from: 'text' };
}

/** A JSON value, or XML as such: an object is keywords, anything else positional. */
export function fromValue(
  value: unknown,
  from: 'json' | 'xml',
  { listItems }: Limits,
): BodyArguments {
  if (Array.isArray(value)) {
    if (value.length > listItems) {
      throw new BadRequest(`the body has more than ${listItems} items`);
    }
    return { keywords: createKeywords(), positionals: value, from };
  }
  if (typeof value !== 'object' || value === null) {
    return { keywords: createKeywords(), positionals: [value], from };
  }
  // Forbidden names are refused while parsing; the size limit bounds their number.
  return { keywords: Object.assign(createKeywords(), value), positionals: [], from };
}

/** A charset other than UTF-8 makes the type unsupported. */
function kindOf({ essence, parameters }: MediaType): BodyKind | 'xml' | undefined {
  if (essence === 'multipart/form-data') return 'multipart';
  const charset = parameters.get('charset')?.toLowerCase() ?? 'utf-8';
  if (charset !== 'utf-8' && charset !== 'utf8' && charset !== 'us-ascii') return undefined;
  if (isJson(essence)) return 'json';
  if (isXml(essence)) return 'xml';
  if (essence === 'application/x-www-form-urlencoded') return 'form';
  return essence === 'text/plain' ? 'text' : undefined;
}

/** Stops reading at the limit; the mount handles the rest of the stream. */
async function readBytes(
  body: AsyncIterable<Uint8Array>,
  { maxBytes, timeoutMs }: { readonly maxBytes: number; readonly timeoutMs: number },
): Promise<Buffer> {
  const iterator = body[Symbol.asyncIterator]();
  const timeout = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    timeout.reject(new HttpError(408, { detail: 'the body did not arrive in time' }));
  }, timeoutMs);
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    while (true) {
      const next = await Promise.race([iterator.next(), timeout.promise]);
      if (next.done === true) return Buffer.concat(chunks);
      size += next.value.byteLength;
      if (size > maxBytes) throw tooLarge(maxBytes);
      chunks.push(next.value);
    }
  } catch (error) {
    // Not awaited: `return` of a stalled body would wait as well.
    iterator.return?.().catch(() => {});
    if (error instanceof HttpError) throw error;
    throw new BadRequest('the body broke off');
  } finally {
    clearTimeout(timer);
  }
}

function tooLarge(maxBytes: number): HttpError {
  return new HttpError(413, { detail: `a body has at most ${maxBytes} bytes` });
}
