// Checks whether memcached accepts a counter key, and replaces one that it does not (behaviour: memory-cache-keys).
import { hash } from 'node:crypto';
import { AppError } from '../../../shared/errors.ts';
import type { CountRequest, Hit } from '../store.ts';

const maxKeyBytes = 250;

/**
 * The error if the hits of this request cannot be counted here: names the first descriptor whose key is too long or
 * could end a command.
 */
export function findBadKey(request: CountRequest): AppError | undefined {
  for (const { key, descriptorIndex } of request.hits) {
    const wrong = findFault(key);
    if (wrong !== undefined) {
      return new AppError(
        'bad_request',
        `descriptors[${descriptorIndex}]: its counter key ${wrong}`,
      );
    }
  }
  return undefined;
}

/** The key, or its SHA-256 if memcached does not accept it. A digest never equals another key: all keys have a `_`. */
export function toSentKey({ key, mapKey }: Pick<Hit, 'key' | 'mapKey'>): string {
  if (findFault(key) === undefined) return key.toWellFormed();
  return mapKey === key ? hash('sha256', key) : mapKey;
}

function findFault(key: string): string | undefined {
  // A UTF-16 unit has at most 3 bytes.
  if (key.length * 3 > maxKeyBytes) {
    const bytes = Buffer.byteLength(key);
    if (bytes > maxKeyBytes) {
      return `has ${bytes} bytes; a memory cache accepts at most ${maxKeyBytes}`;
    }
  }
  for (let index = 0; index < key.length; index++) {
    const code = key.charCodeAt(index);
    if (code <= 0x20 || code === 0x7f) {
      return 'has white space or a control character, which a memory cache does not accept';
    }
  }
  return undefined;
}
