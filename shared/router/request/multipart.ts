// `multipart/form-data`: either complete in memory, as keywords (fields as texts, file parts as Files), or part by part
// while it arrives.
import { on } from 'node:events';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import { BadRequest, HttpError } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { parseJson } from './json.ts';
import { isJson, type MediaType } from './media-type.ts';
import { addKeyword, createKeywords, type Keywords } from './target.ts';
import { decodeUtf8, refuseRepaired } from './utf8.ts';

/** A field or a file of a streamed body: its bytes while they arrive. */
export interface BodyPart extends AsyncIterable<Uint8Array> {
  readonly name: string;
  /** As the client sends it, without folders; undefined for a field. Never a path to write to. */
  readonly filename: string | undefined;
  /** As the client sends it; `text/plain` if absent. */
  readonly type: string;
  /** The whole part as UTF-8. Throws 400 for other bytes, and 413 above 64 KiB. */
  text(): Promise<string>;
}

const headerPairsPerPart = 16;
const fileType = 'application/octet-stream';

/** Maximum size of a part that is read as a text: larger content should be sent as a file. */
const maxTextBytes = 64 * 1024;

/** Repeated names become lists. Throws 400. */
export async function parseMultipart(
  type: MediaType,
  bytes: Uint8Array,
  limits: Limits,
): Promise<Keywords> {
  const keywords = createKeywords();
  const form = { chunks: Readable.from([bytes]), leave() {} };
  for await (const part of readParts(type, form, limits)) {
    const { name, filename, type: partType } = part;
    const content = Buffer.concat(await Array.fromAsync(part));
    const value = toValue(content, filename, partType, limits);
    addKeyword(keywords, name, value, { where: 'body', limits });
  }
  return keywords;
}

interface StreamedForm {
  readonly chunks: AsyncIterable<Uint8Array>;
  /** Ends the chunks, even while a read is pending. */
  leave(): void;
}

/** Throws read errors of the chunks, and 400 if the body is not multipart. */
export async function* readParts(
  type: MediaType,
  { chunks, leave }: StreamedForm,
  { multipartParts }: Limits,
): AsyncGenerator<BodyPart, void> {
  const streams: BusboyFileStream[] = [];
  // Also one after the reader has disconnected.
  const parser = createParser(type, multipartParts).on('error', () => {});
  // The parts of a chunk that has been read. Its errors are thrown to the reader of the next part.
  const found = on(parser, 'file', { close: ['finish'] });
  // Errors are thrown to the part's reader, if it has one.
  parser.on('file', (_name, stream) => streams.push(stream.on('error', () => {})));
  const source = Readable.from(chunks);
  pipeline(source, parser).catch((error: unknown) => {
    for (const stream of streams) if (!stream.readableEnded) stream.destroy(toRefusal(error));
  });
  try {
    for await (const [name, stream, filename, , contentType] of found) {
      const head = checkNames({ name, filename, type: contentType });
      const chunks = chunksOf(stream);
      const isNamed = head.filename === undefined ? head.type !== fileType : head.filename !== '';
      const first = isNamed ? undefined : await chunks.next();
      // Otherwise it is a file input that the user left empty.
      if (first?.done !== true) yield toPart(head, first ? withFirst(first.value, chunks) : chunks);
      stream.resume();
    }
  } catch (error) {
    throw toRefusal(error);
  } finally {
    source.destroy();
    leave();
  }
}

interface PartHead {
  readonly name: string | undefined;
  readonly filename: string | undefined;
  readonly type: string;
}

/** Throws 400 if there is no boundary. The parser can throw any error. */
function createParser(type: MediaType, parts: number): BusboyInstance {
  const boundary = type.parameters.get('boundary') ?? '';
  if (!/^[\x20-\x7e]{1,70}$/.test(boundary)) {
    throw new BadRequest('the multipart body has no boundary');
  }
  const parser = new Busboy({
    headers: { 'content-type': `multipart/form-data; boundary="${escapeQuotes(boundary)}"` },
    // Every part is read as bytes, so that a field that is not UTF-8 is refused instead of repaired.
    isPartAFile: () => true,
    limits: { parts, headerPairs: headerPairsPerPart },
  });
  parser.on('partsLimit', () => {
    parser.destroy(new BadRequest(`the body has more than ${parts} parts`));
  });
  return parser;
}

/** Throws 400 for a part without a name, and for names that the parser has repaired. */
function checkNames({ name, filename, type }: PartHead): PartHead & { readonly name: string } {
  if (name === undefined) throw new BadRequest('a part of the body has no name');
  refuseRepaired(name);
  refuseRepaired(filename ?? '');
  return { name: toWritten(name), filename: filename && toWritten(filename), type };
}

/** Browsers encode these characters, which would end a name, and no others. */
function toWritten(name: string): string {
  return name.replace(/%(?:22|0A|0D)/gi, decodeURIComponent);
}

type Chunks = AsyncGenerator<Uint8Array, void>;

async function* withFirst(first: Uint8Array, chunks: Chunks): Chunks {
  yield first;
  yield* chunks;
}

function toPart(head: PartHead & { readonly name: string }, content: Chunks): BodyPart {
  return {
    ...head,
    [Symbol.asyncIterator]: () => content,
    async text() {
      const chunks: Uint8Array[] = [];
      let bytes = 0;
      for await (const chunk of content) {
        bytes += chunk.byteLength;
        if (bytes > maxTextBytes) {
          throw new HttpError(413, { detail: `${head.name} has at most ${maxTextBytes} bytes` });
        }
        chunks.push(chunk);
      }
      return decodeUtf8(Buffer.concat(chunks));
    },
  };
}

async function* chunksOf(stream: BusboyFileStream): Chunks {
  try {
    // The parser waits for an unread part, so it is read to its end, and never destroyed.
    yield* (stream as Readable).iterator({ destroyOnReturn: false });
  } catch (error) {
    throw toRefusal(error);
  }
}

function toRefusal(error: unknown): HttpError {
  return error instanceof HttpError ? error : new BadRequest('the multipart body is broken');
}

/** A part without a file name is its text, or its value if it is JSON; any other is a file. */
function toValue(
  bytes: Buffer<ArrayBuffer>,
  filename: string | undefined,
  contentType: string,
  { jsonDepth }: Limits,
): unknown {
  const isValue = filename === undefined;
  if (isValue && contentType.startsWith('text/')) return decodeUtf8(bytes);
  if (isValue && isJson(contentType)) return parseJson(decodeUtf8(bytes), jsonDepth);
  return new File([bytes], filename ?? '', { type: contentType });
}

function escapeQuotes(text: string): string {
  return text.replace(/["\\]/g, '\\$&');
}
