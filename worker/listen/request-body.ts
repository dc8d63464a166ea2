// Reads requests' bodies whole, whatever their methods and content types, up to a bound for each and one
// for all that are being read.
import type { IncomingMessage } from 'node:http';

export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'too-large' }
  /** Together with those of others. */
  | { readonly kind: 'too-many' }
  /** The caller went away before the end. */
  | { readonly kind: 'aborted' };

export interface BodyLimits {
  readonly maxBytes: number;
  readonly maxAllBytes: number;
}

/** The function stops reading when the body is too large, or there are too many; the connection must
 * then be closed after the answer. */
export function createBodyReader({
  maxBytes,
  maxAllBytes,
}: BodyLimits): (request: IncomingMessage) => Promise<Body> {
  let heldBytes = 0;

  return (request) => {
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) {
      return Promise.resolve({ kind: 'too-large' });
    }
    return new Promise((resolve) => {
      const chunks: Buffer[] = [];
      let length = 0;
      let isSettled = false;
      const settle = (body: Body) => {
        if (isSettled) return;
        isSettled = true;
        heldBytes -= length;
        request.off('data', onData);
        resolve(body);
      };
      const stop = (kind: 'too-large' | 'too-many') => {
        request.pause();
        settle({ kind });
      };
      const onData = (chunk: Buffer) => {
        length += chunk.length;
        heldBytes += chunk.length;
        chunks.push(chunk);
        if (length > maxBytes) stop('too-large');
        else if (heldBytes > maxAllBytes) stop('too-many');
      };
      request.on('data', onData);
      request.once('end', () => settle({ kind: 'whole', bytes: Buffer.concat(chunks, length) }));
      request.once('close', () => settle({ kind: 'aborted' }));
      request.once('error', () => settle({ kind: 'aborted' }));
    });
  };
}
