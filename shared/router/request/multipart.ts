// `multipart/form-data` to keywords: fields as texts, file parts as Files. The body is already in memory,
// within its limit.
import { Busboy } from '@fastify/busboy';
import { BadRequest } from '../errors.ts';
import type { Limits } from '../limits.ts';
import { addKeyword, createKeywords, type Keywords } from './keywords.ts';
import type { MediaType } from './media-type.ts';
import { decodeUtf8, refuseRepaired } from './utf8.ts';

const headerPairsPerPart = 16;

/** Repeated names become lists. Throws 400. */
export function parseMultipart(
  type: MediaType,
  bytes: Uint8Array,
  limits: Limits,
): Promise<Keywords> {
  return new Promise((resolve, reject) => {
    const boundary = type.parameters.get('boundary') ?? '';
    if (!/^[\x20-\x7e]{1,70}$/.test(boundary)) {
      throw new BadRequest('the multipart body has no boundary');
    }
    const keywords = createKeywords();
    const refuse = (error: unknown) => {
      reject(error instanceof BadRequest ? error : new BadRequest('the multipart body is broken'));
    };
    const parser = new Busboy({
      headers: { 'content-type': `multipart/form-data; boundary="${escapeQuotes(boundary)}"` },
      // Every part is read as bytes, so that a field that is not UTF-8 is refused instead of repaired.
      isPartAFile: () => true,
      limits: { parts: limits.multipartParts, headerPairs: headerPairsPerPart },
    });
    parser.on('file', (name: string | undefined, stream, filename, _encoding, contentType) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('error', refuse);
      stream.on('end', () => {
        try {
          if (name === undefined) throw new BadRequest('a part of the body has no name');
          // The parser repairs names.
          refuseRepaired(name);
          refuseRepaired((filename as string | undefined) ?? '');
          const value = toValue(Buffer.concat(chunks), filename as string | undefined, contentType);
          addKeyword(keywords, name, value, { where: 'body', limits });
        } catch (error) {
          refuse(error);
        }
      });
    });
    parser.on('partsLimit', () => {
      refuse(new BadRequest(`the body has more than ${limits.multipartParts} parts`));
    });
    parser.on('error', refuse);
    parser.on('finish', () => resolve(keywords));
    parser.end(bytes);
  });
}

function toValue(bytes: Buffer, filename: string | undefined, contentType: string): string | File {
  if (filename !== undefined || contentType === 'application/octet-stream') {
    return new File([new Uint8Array(bytes)], filename ?? '', { type: contentType });
  }
  return decodeUtf8(bytes);
}

function escapeQuotes(text: string): string {
  return text.replace(/["\\]/g, '\\$&');
}
