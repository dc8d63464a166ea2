// Computes the digest of a value that may contain all files of a store, while other requests are served.
import { createHash } from 'node:crypto';
import { runInSlices } from '../../../shared/in-slices.ts';
import { writingJson } from './json-in-slices.ts';

/** SHA-256, in hexadecimal digits, of the concatenated JSON of the values. */
export function toJsonDigest(values: Iterable<unknown>): Promise<string> {
  return runInSlices(digestingJson(values));
}

/** Like `toJsonDigest`, in steps. */
export function* digestingJson(values: Iterable<unknown>): Generator<void, string> {
  const hash = createHash('sha256');
  for (const value of values) {
    for (const part of writingJson(value)) {
      hash.update(part);
      yield;
    }
  }
  return hash.digest('hex');
}
