// Converts a YAML request body for the router, into JSON with the text in the field `yaml`. `curl --data-binary
// @rules.yaml` then works alongside programs that send JSON.
import { BadRequest, HttpError, type RequestLike } from '../../../shared/router/index.ts';

const yamlType = /^(?:application|text)\/(?:x-)?yaml\s*(?:;|$)/i;

/** Other requests are returned unchanged. A text longer than `maxBytes` is refused with 413 while it is read, and one
 * that is not UTF-8 with 400. */
export function toJsonRequest(request: RequestLike, maxBytes: number): RequestLike {
  const { body } = request;
  if (body === undefined || !yamlType.test(request.headers.get('content-type') ?? '')) {
    return request;
  }
  const headers = new Headers([...request.headers]);
  headers.set('content-type', 'application/json');
  headers.delete('content-length');
  return { ...request, headers, body: toJsonBody(body, maxBytes) };
}

/** Converted chunk by chunk: the router's own limit may be lower, and stops the reading. */
async function* toJsonBody(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): AsyncIterable<Uint8Array> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let size = 0;
  yield Buffer.from('{"yaml":"');
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > maxBytes) {
      throw new HttpError(413, { detail: `a YAML body has at most ${maxBytes} bytes` });
    }
    yield toJsonPiece(() => decoder.decode(chunk, { stream: true }));
  }
  yield toJsonPiece(() => decoder.decode());
  yield Buffer.from('"}');
}

/** A part of a JSON string, without its quotes. */
function toJsonPiece(decode: () => string): Buffer {
  try {
    return Buffer.from(JSON.stringify(decode()).slice(1, -1));
  } catch {
    throw new BadRequest('the body is not UTF-8 text');
  }
}
