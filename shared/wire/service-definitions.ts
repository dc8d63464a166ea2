// Reads interfaces of proto/.
import type { Options } from '@grpc/proto-loader';
import { loadLibrary } from '../library.ts';
import { ownPath } from '../own-files.ts';

/**
 * The services and messages of the files, by their full names. Messages are plain objects: camelCase names, 64-bit
 * integers as decimal strings, every field present. Reading takes some milliseconds: call it once per process, in the
 * composition root.
 */
export function loadDefinitions(
  files: readonly string[],
  options: Options = {},
): Readonly<Record<string, unknown>> {
  // Loaded only where messages are used: many users of this folder need only names and types.
  const { loadSync } = loadLibrary('@grpc/proto-loader') as typeof import('@grpc/proto-loader');
  const includeDirs = [ownPath('proto')];
  return loadSync([...files], {
    includeDirs,
    longs: String,
    defaults: true,
    oneofs: true,
    ...options,
  });
}
