// Compression of answers, for applications without a proxy that does it.
import { pipeline, Readable, Transform, type TransformCallback } from 'node:stream';
import { promisify } from 'node:util';
import {
  brotliCompress,
  constants,
  createBrotliCompress,
  createGzip,
  gzip,
  type Zlib,
} from 'node:zlib';
import { addVary } from '../request/listed-headers.ts';
import { readWeights } from '../request/media-type.ts';
import { type Around, isBuffered, type RoutedAnswer } from '../request/request.ts';
import { withCoding } from './conditions.ts';

interface Coding {
  compress(body: string | Uint8Array): Promise<Uint8Array>;
  stream(): Transform & Zlib;
}

const brotliOptions = { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } };

/** Ordered by preference, for codings that a client accepts equally. */
const codings: Readonly<Record<string, Coding>> = {
  br: {
    compress: (body) => promisify(brotliCompress)(body, brotliOptions),
    stream: () => createBrotliCompress(brotliOptions),
  },
  gzip: {
    compress: (body) => promisify(gzip)(body),
    stream: () => createGzip(),
  },
};

/** Content that is already compressed, such as pictures, would grow. */
const compressible =
  /^(?:text\/(?!event-stream)|image\/svg|application\/(?:[^;]*\+)?(?:json|xml|javascript|wasm|x-ndjson|yaml)\b)/i;

/** `around: compress()`: compresses text, JSON and the like of at least `fromBytes`, 1,024 by default, if the client
 * accepts it; streams too. Never compresses events, parts of files, and answers with a `Content-Encoding` or
 * `Cache-Control: no-transform`. Do not use it for answers that contain a secret together with what a caller has sent:
 * their lengths reveal it. */
export function compress({ fromBytes = 1024 }: { readonly fromBytes?: number } = {}): Around {
  return async (next, request) => {
    const answer = await next();
    const { status, headers, body } = answer;
    const isWanted = isCompressible(answer, fromBytes);
    // A partial answer, and 304, have the headers that their 200 would have (RFC 9110, sections 15.3.7 and 15.4.5).
    if (isWanted || status === 206 || status === 304) addVary(headers, 'Accept-Encoding');
    if (!isWanted) return answer;
    const name = chooseCoding(request.headers.get('accept-encoding') ?? '');
    const coding = codings[name ?? ''];
    if (name === undefined || coding === undefined || body === undefined) return answer;
    const tag = headers.get('etag');
    if (isBuffered(body)) {
      answer.body = await coding.compress(body);
    } else {
      const stream = coding.stream();
      const joined = new Joining();
      // The error reaches the reader of the stream.
      pipeline(Readable.from(body), joined, stream, () => {});
      // A short chunk is one before a pause: the reader may wait for it.
      joined.on('data', (chunk: Buffer) => {
        if (chunk.length < joinedBytes) stream.flush();
      });
      answer.body = stream;
    }
    if (tag !== null) headers.set('etag', withCoding(tag, name));
    headers.set('content-encoding', name);
    // A range of the compressed body would be a range of the bytes before compression.
    headers.delete('accept-ranges');
    return answer;
  };
}

/** Chunks of at least this size are compressed as they are. */
const joinedBytes = 16_384;

/** Joins small chunks that come at once: compressing each by itself takes ten times as long, and more bytes. */
class Joining extends Transform {
  #parts: Buffer[] = [];
  #bytes = 0;
  #timer: NodeJS.Immediate | undefined;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes >= joinedBytes) this.#send();
    else this.#timer ??= setImmediate(() => this.#send());
    done();
  }

  override _flush(done: TransformCallback): void {
    this.#send();
    done();
  }

  #send(): void {
    clearImmediate(this.#timer);
    this.#timer = undefined;
    if (this.#bytes > 0 && !this.destroyed) this.push(Buffer.concat(this.#parts));
    this.#parts = [];
    this.#bytes = 0;
  }
}

function isCompressible({ status, headers, body }: RoutedAnswer, fromBytes: number): boolean {
  if (status === 206 || headers.has('content-encoding')) return false;
  if (/\bno-transform\b/i.test(headers.get('cache-control') ?? '')) return false;
  if (!compressible.test(headers.get('content-type') ?? '')) return false;
  const length = headers.get('content-length');
  return body !== undefined && (length === null || Number(length) >= fromBytes);
}

/** Undefined if the client accepts none of the codings, or prefers the answer without one. */
function chooseCoding(accept: string): string | undefined {
  const weights = new Map(
    readWeights(accept).map(([name, weight]) => [name === 'x-gzip' ? 'gzip' : name, weight]),
  );
  const weightOf = (name: string) => weights.get(name) ?? weights.get('*') ?? 0;
  const least = weights.get('identity') ?? 0;
  const [best] = Object.keys(codings)
    .filter((name) => weightOf(name) > 0 && weightOf(name) >= least)
    .sort((a, b) => weightOf(b) - weightOf(a));
  return best;
}
