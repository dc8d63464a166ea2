// Reads a body within its size limit and deadline, and parses it by its media type (behaviour: bodies).
import { IncomingMessage } from 'node:http';
import { bodyTooLarge, HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import type { BodyKind } from './body-kind.ts';
import { BodyStream, readChunks } from './body-stream.ts';
import { fewBytes, type JsonParser, parseJson, refuseUnsafe } from './json.ts';
import { type Keywords, noKeywords, parseUrlencoded } from './keywords.ts';
import { isJson, isXml, type MediaType, parseMediaType } from './media-type.ts';
import { parseMultipart } from './multipart.ts';
import type { RequestLike } from './request.ts';
import { decodeUtf8 } from './utf8.ts';

/** Where a value comes from. `text` is a path, a query or a form: a list is a repeated name. XML has only texts
 * too, but nested in objects. */
export type Origin = 'text' | 'json' | 'xml';

export interface BodyArguments {
  readonly keywords: Readonly<Keywords>;
  /** Items of a list, a value that is neither list nor object, or a plain text. */
  readonly positionals: readonly unknown[];
  /** The same as it came: an object, a list, or another value; undefined where there is none. */
  readonly whole?: unknown;
  readonly from: Origin;
  /** The length of the whole body. */
  readonly bytes: number;
  /** The body as it came, or while it arrives, of a method that takes it so. */
  readonly unparsed?: Uint8Array | BodyStream;
}

export const noBody: BodyArguments = {
  keywords: noKeywords,
  positionals: [],
  from: 'json',
  bytes: 0,
};

export interface BodyReader {
  /** Throws 400, 408, 413 and 415. An empty body is nothing, whatever its type. */
  readBody(request: RequestLike, reading: BodyReading): Promise<BodyArguments>;
}

export interface BodyReading {
  /** Whether the method takes a body; otherwise it is read only to see whether it is empty. */
  readonly taken: boolean;
  /** Set for a method that takes its body unparsed: as bytes, or as a stream. */
  readonly unparsed: 'raw' | 'stream' | undefined;
  /** The limits of the method. */
  readonly limits: Limits;
  /** Where XML is allowed. */
  readonly xml: { readXml(text: string, limits: Limits): unknown } | undefined;
}

/** Bytes of a body that the method does not take: enough for `{}` and the like. */
const maxUntakenBytes = 8 * 1024;

export function createBodyReader(
  accepted: readonly BodyKind[],
  largeJson: JsonParser | undefined,
): BodyReader {
  const withXml = [...accepted, 'xml'];
  return {
    async readBody({ headers, body, askForBody }, { taken, unparsed, xml, limits }) {
      const { bodyBytes, bodyTimeoutMs } = limits;
      const maxBytes = taken ? bodyBytes : Math.min(bodyBytes, maxUntakenBytes);
      const declared = Number(headers.get('content-length') ?? 0);
      if (declared > maxBytes) throw bodyTooLarge(maxBytes);
      const type = parseMediaType(headers.get('content-type') ?? '');
      if (unparsed === 'stream') {
        return { ...noBody, unparsed: new BodyStream(body, { type, limits, askForBody }) };
      }
      if (body === undefined) return unparsed === 'raw' ? rawOf(new Uint8Array()) : noBody;
      askForBody?.();
      const bytes =
        (await takeArrived(body, maxBytes)) ??
        Buffer.concat(
          await Array.fromAsync(readChunks(body, { bodyBytes: maxBytes, bodyTimeoutMs })),
        );
      if (unparsed === 'raw') return rawOf(bytes);
      if (bytes.length === 0) return noBody;
      const kind = type && kindOf(type);
      const encoding = headers.get('content-encoding') ?? 'identity';
      const kinds: readonly string[] = xml === undefined ? accepted : withXml;
      if (type === undefined || kind === undefined || !kinds.includes(kind)) {
        throw new HttpError(415, { detail: `a body must be ${kinds.join(', ')}` });
      }
      if (encoding !== 'identity') {
        throw new HttpError(415, { detail: 'a compressed body is not understood' });
      }
      if (kind === 'multipart')
        return fromForm(await parseMultipart(type, bytes, limits), bytes.length);
      const about = { from: kind === 'xml' ? kind : 'json', bytes: bytes.length } as const;
      if (kind === 'json' && bytes.length > fewBytes && largeJson !== undefined) {
        return fromValue(await largeJson(bytes, limits.jsonDepth, refuseUnsafe), about);
      }
      const text = decodeUtf8(bytes);
      if (kind === 'form') return fromForm(parseUrlencoded(text, 'body', limits), bytes.length);
      if (kind === 'text')
        return { ...noBody, positionals: [text], whole: text, bytes: bytes.length };
      const value =
        kind === 'json' ? parseJson(text, limits.jsonDepth) : xml?.readXml(text, limits);
      return fromValue(value, about);
    },
  };
}

function rawOf(bytes: Uint8Array): BodyArguments {
  return { ...noBody, unparsed: bytes, bytes: bytes.length };
}

function fromForm(keywords: Keywords, bytes: number): BodyArguments {
  return { keywords, positionals: [], whole: keywords, from: 'text', bytes };
}

/** A JSON value, or XML as such: an object is keywords, anything else positional. */
export function fromValue(
  whole: unknown,
  about: Pick<BodyArguments, 'from' | 'bytes'>,
): BodyArguments {
  if (Array.isArray(whole)) return { keywords: noKeywords, positionals: whole, whole, ...about };
  if (typeof whole !== 'object' || whole === null) {
    return { keywords: noKeywords, positionals: [whole], whole, ...about };
  }
  // Forbidden names are refused while parsing; the size limit bounds their number.
  return { keywords: whole as Keywords, positionals: [], whole, ...about };
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

/**
 * The whole body of a message of node:http that has arrived with its head, as most have: taken so, it costs less than by
 * its iterator. Undefined where there is more to come, or more than the bound. The parser that called us hands over the
 * body, and reports that there is no more, when it has been returned to: a turn of the event loop later it is known.
 */
async function takeArrived(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array | undefined> {
  if (!(body instanceof IncomingMessage)) return undefined;
  if (!body.complete) await new Promise(setImmediate);
  if (!body.complete || body.destroyed || body.readableFlowing !== null) return undefined;
  return body.readableLength > maxBytes ? undefined : (body.read() ?? undefined);
}
