// Reads requests' bodies whole, whatever their methods and content types, up to a bound for each and one
// for all that are being read.
import type { IncomingMessage } from 'node:http';

export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'too-large' }
  /** Together with those of others, before which it was begun. */
  | { readonly kind: 'too-many' }
  /** The caller went away before the end. */
  | { readonly kind: 'aborted' };

export interface BodyLimits {
  readonly maxBytes: number;
  /** Of memory. */
  readonly maxAllBytes: number;
}

type Stop = (kind: 'too-large' | 'too-many') => void;

const nothing = Buffer.alloc(0);

/** The function stops reading when the body is too large, or there are too many; the connection must
 * then be closed after the answer. */
export function createBodyReader({
  maxBytes,
  maxAllBytes,
}: BodyLimits): (request: IncomingMessage) => Promise<Body> {
  let heldBytes = 0;
  /** One for each body that is being read, the one that was begun first at the front: bytes that trickle in
   * buy no time, and who sends a whole body is done before others have filled up what there is. */
  const reading = new Set<Stop>();

  return (request) => {
    if (Number(request.headers['content-length'] ?? 0) > maxBytes) {
      return Promise.resolve({ kind: 'too-large' });
    }
    return new Promise((resolve) => {
      let bytes: Buffer = nothing;
      let length = 0;
      const settle = (body: Body) => {
        if (!reading.delete(stop)) return;
        heldBytes -= bytes.length;
        request.off('data', onData);
        resolve(body);
      };
      const stop: Stop = (kind) => {
        request.pause();
        settle({ kind });
      };
      /** Into one piece at once: a chunk of one byte takes a hundred. */
      const onData = (chunk: Buffer) => {
        const end = length + chunk.length;
        if (end > maxBytes) {
          stop('too-large');
          return;
        }
        if (end > bytes.length) grow(end);
        chunk.copy(bytes, length);
        length = end;
        for (const stopNext of reading) {
          if (heldBytes <= maxAllBytes) break;
          stopNext('too-many');
        }
      };
      const grow = (needed: number) => {
        const larger = Buffer.allocUnsafeSlow(
          Math.min(Math.max(needed, 2 * bytes.length), maxBytes),
        );
        bytes.copy(larger, 0, 0, length);
        heldBytes += larger.length - bytes.length;
        bytes = larger;
      };
      reading.add(stop);
      request.on('data', onData);
      request.once('end', () => settle({ kind: 'whole', bytes: bytes.subarray(0, length) }));
      request.once('close', () => settle({ kind: 'aborted' }));
      request.once('error', () => settle({ kind: 'aborted' }));
    });
  };
}
