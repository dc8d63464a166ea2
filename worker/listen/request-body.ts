// Reads request bodies completely, with any method and content type, within a limit for each and one for all bodies
// being read.
import type { IncomingMessage } from 'node:http';

export type Body =
  | { readonly kind: 'whole'; readonly bytes: Buffer }
  | { readonly kind: 'too-large' }
  /** Too many bytes together with other bodies, of which this one is the oldest. */
  | { readonly kind: 'too-many' }
  /** The caller disconnected before the end. */
  | { readonly kind: 'aborted' };

export interface BodyLimits {
  readonly maxBytes: number;
  /** Bounds the memory of all bodies together. */
  readonly maxAllBytes: number;
}

type Stop = (kind: 'too-large' | 'too-many') => void;

const nothing = Buffer.alloc(0);

/**
 * Reading stops when the body, or all bodies together, are too large; the connection must then be closed after the
 * answer.
 */
export function createBodyReader({
  maxBytes,
  maxAllBytes,
}: BodyLimits): (request: IncomingMessage) => Promise<Body> {
  let bufferedBytes = 0;
  /**
   * One function for each body being read. The oldest is first and is ended first: trickling bytes gain no time, and a
   * client that sends a complete body finishes before others fill the limit.
   */
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
        bufferedBytes -= bytes.length;
        request.off('data', onData);
        resolve(body);
      };
      const stop: Stop = (kind) => {
        request.pause();
        settle({ kind });
      };
      /** Copied into one buffer immediately: a stored chunk of one byte takes a hundred. */
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
          if (bufferedBytes <= maxAllBytes) break;
          stopNext('too-many');
        }
      };
      const grow = (needed: number) => {
        const larger = Buffer.allocUnsafeSlow(
          Math.min(Math.max(needed, 2 * bytes.length), maxBytes),
        );
        bytes.copy(larger, 0, 0, length);
        bufferedBytes += larger.length - bytes.length;
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
