// Maps code to its position in the sources, for logs and profiles: a build has source maps beside its files. Node's own
// --enable-source-maps reads all maps at each start; here a map is read when it is needed.
import { readFileSync } from 'node:fs';
import { SourceMap, type SourceMapPayload } from 'node:module';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { errorText, isOutOfFiles } from './errors.ts';
import { isBuilt, ownPath } from './own-files.ts';

export interface SourcePosition {
  /** Relative to the root of the sources. */
  readonly path: string;
  /** The line, 1-based. */
  readonly line: number;
}

/** Lines and columns are 0-based. Undefined for code that is not part of our build. */
export type FindPosition = (
  url: string,
  line: number,
  column: number,
) => SourcePosition | undefined;

/** Caches the maps that it has read. */
export function createFindPosition(): FindPosition {
  if (!isBuilt) return () => undefined;
  const maps = new Map<string, SourceMap | undefined>();
  return (url, line, column) => {
    if (!maps.has(url)) maps.set(url, readMap(url));
    const entry = maps.get(url)?.findEntry(line, column);
    if (entry === undefined || !('originalSource' in entry)) return undefined;
    return {
      path: entry.originalSource.replace(/^(?:\.\.\/)+/, ''),
      line: entry.originalLine + 1,
    };
  };
}

/** The stack of an error; the text of any other thrown value, and of a limit that operators have to raise. */
export function stackText(error: unknown): string {
  if (isOutOfFiles(error)) return errorText(error);
  return withSourcePositions(
    error instanceof Error ? (error.stack ?? error.message) : String(error),
  );
}

/** `text` with `worker/main.ts:7` in place of `file:///somewhere/dist/worker/main.js:10:3`. */
export function withSourcePositions(text: string): string {
  const find = createFindPosition();
  return text.replace(/(file:\/\/[^\s:]+):(\d+):(\d+)/g, (written, url, line, column) => {
    const position = find(url, Number(line) - 1, Number(column) - 1);
    return position === undefined ? written : `${position.path}:${position.line}`;
  });
}

/** Undefined for foreign files, which a message may name, and where the maps were left out. */
function readMap(url: string): SourceMap | undefined {
  try {
    const path = fileURLToPath(`${url}.map`);
    if (!path.startsWith(join(ownPath('.'), sep))) return undefined;
    return new SourceMap(JSON.parse(readFileSync(path, 'utf8')) as SourceMapPayload);
  } catch {
    return undefined;
  }
}
