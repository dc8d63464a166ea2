// Reads a request's body whole, whatever its method and content type, up to a bound.
import type { IncomingMessage } from 'node:http';

export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'too-large' }
  /** The caller went away before the end. */
  | { readonly kind: 'aborted' };

/** Stops reading when the body is too large; the connection must then be closed after the answer. */
export function readBody(request: IncomingMessage, limitBytes: number): Promise<Body> {
  if (Number(request.headers['content-length'] ?? 0) > limitBytes) {
    return Promise.resolve({ kind: 'too-large' });
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (body: Body) => {
      request.off('data', onData);
      resolve(body);
    };
    const onData = (chunk: Buffer) => {
      length += chunk.length;
      chunks.push(chunk);
      if (length > limitBytes) {
        request.pause();
        settle({ kind: 'too-large' });
      }
    };
    request.on('data', onData);
    request.once('end', () => settle({ kind: 'whole', bytes: Buffer.concat(chunks, length) }));
    request.once('close', () => settle({ kind: 'aborted' }));
    request.once('error', () => settle({ kind: 'aborted' }));
  });
}
