// Reads a body within its size limit and deadline, and parses it by its media type (behaviour: bodies).
import { IncomingMessage } from 'node:http';
import { bodyTooLarge, HttpError, NotImplemented } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { BodyStream, readChunks } from './body-stream.ts';
import { fewBytes, type JsonParser, parseJson, refuseUnsafe } from './json.ts';
import { type BodyKind, kindOf, parseMediaType } from './media-type.ts';
import { parseMultipart } from './multipart.ts';
import type { RequestLike } from './request.ts';
import { parseUrlencoded } from './target.ts';
import { decodeUtf8 } from './utf8.ts';

/** The source of a value. `text` is a path, a query or a form: a list is a repeated name. XML also has only texts, but
 * nested in objects. */
export type Origin = 'text' | 'json' | 'xml';

export interface BodyArguments {
  /** An object of fields, a list, or another value; undefined without a body. */
  readonly value: unknown;
  readonly from: Origin;
  /** The unparsed body, complete or while it arrives, for a method that declares it so. */
  readonly unparsed?: Uint8Array | BodyStream;
}

export const noBody: BodyArguments = { value: undefined, from: 'json' };

/** Throws 400, 408, 413, 415, and 501 for a coding other than `chunked` (RFC 9112 section 6.1). An empty body counts as
 * absent, whatever its type. */
export type ReadBody = (request: RequestLike, reading: BodyReading) => Promise<BodyArguments>;

export interface BodyReading {
  /** Whether the method accepts a body; otherwise it is read only to determine whether it is empty. */
  readonly isAccepted: boolean;
  /** Set for a method that receives its body unparsed: as bytes, or as a stream. */
  readonly unparsed: 'raw' | 'stream' | undefined;
  /** The limits of the method. */
  readonly limits: Limits;
  /** Set if XML is allowed. */
  readonly xml: { readXml(text: string, limits: Limits): unknown } | undefined;
}

/** Maximum bytes of a body that the method does not accept: enough for `{}` and the like. */
const maxUntakenBytes = 8 * 1024;

export function createBodyReader(
  accepted: readonly BodyKind[],
  largeJson: JsonParser | undefined,
): ReadBody {
  const withXml = [...accepted, 'xml'];
  return async ({ headers, body, askForBody }, { isAccepted, unparsed, xml, limits }) => {
    const { bodyBytes, bodyTimeoutMs } = limits;
    const maxBytes = isAccepted ? bodyBytes : Math.min(bodyBytes, maxUntakenBytes);
    const declared = Number(headers.get('content-length') ?? 0);
    if (declared > maxBytes) throw bodyTooLarge(maxBytes);
    const coding = headers.get('transfer-encoding')?.toLowerCase() ?? 'chunked';
    if (coding !== 'chunked') throw new NotImplemented();
    const type = parseMediaType(headers.get('content-type') ?? '');
    if (unparsed === 'stream') {
      return { ...noBody, unparsed: new BodyStream(body, { type, limits, askForBody }) };
    }
    if (body === undefined) {
      return unparsed === 'raw' ? { ...noBody, unparsed: new Uint8Array() } : noBody;
    }
    askForBody?.();
    if (body instanceof IncomingMessage && !body.complete) await nextTurn();
    const bytes =
      readArrived(body, maxBytes) ??
      Buffer.concat(
        await Array.fromAsync(readChunks(body, { bodyBytes: maxBytes, bodyTimeoutMs })),
      );
    if (unparsed === 'raw') return { ...noBody, unparsed: bytes };
    if (bytes.length === 0) return noBody;
    const kind = type && kindOf(type);
    const encoding = headers.get('content-encoding')?.toLowerCase() ?? 'identity';
    const kinds: readonly string[] = xml === undefined ? accepted : withXml;
    if (type === undefined || kind === undefined || !kinds.includes(kind)) {
      throw new HttpError(415, { detail: `a body must be ${kinds.join(', ')}` });
    }
    if (encoding !== 'identity') {
      throw new HttpError(415, { detail: 'a compressed body is not understood' });
    }
    if (kind === 'multipart') {
      return { value: await parseMultipart(type, bytes, limits), from: 'text' };
    }
    if (kind === 'json' && bytes.length > fewBytes && largeJson !== undefined) {
      return { value: await largeJson(bytes, limits.jsonDepth, refuseUnsafe), from: 'json' };
    }
    const text = decodeUtf8(bytes);
    if (kind === 'form' && /^\s*\{\s*"/.test(text)) {
      throw new HttpError(415, { detail: 'a body in JSON needs content-type: application/json' });
    }
    if (kind === 'form') return { value: parseUrlencoded(text, 'body', limits), from: 'text' };
    if (kind === 'xml') return { value: xml?.readXml(text, limits), from: 'xml' };
    return { value: kind === 'text' ? text : parseJson(text, limits.jsonDepth), from: 'json' };
  };
}

let turn: Promise<void> | undefined;

/** Resolves in the next turn of the event loop; all requests of a turn share one promise. The HTTP parser delivers
 * the other bytes that have arrived only after its call of this module returns. */
function nextTurn(): Promise<void> {
  turn ??= new Promise((resolve) => {
    setImmediate(() => {
      turn = undefined;
      resolve();
    });
  });
  return turn;
}

/** The complete body of a node:http message that has arrived together with its head, like most: read this way, it costs
 * less than through its iterator. Undefined if more is to come, or if the body exceeds the bound. */
function readArrived(body: AsyncIterable<Uint8Array>, maxBytes: number): Uint8Array | undefined {
  if (!(body instanceof IncomingMessage)) return undefined;
  if (!body.complete || body.destroyed || body.readableFlowing !== null) return undefined;
  return body.readableLength > maxBytes ? undefined : (body.read() ?? undefined);
}
