// The version of all programs: that of the package.
import { readFileSync } from 'node:fs';
import { extname } from 'node:path';

/** package.json of the sources, or of the build, one folder deeper. */
export function readVersion(): string {
  const folder = extname(import.meta.filename) === '.js' ? '../..' : '..';
  const file = new URL(`${folder}/package.json`, import.meta.url);
  return (JSON.parse(readFileSync(file, 'utf8')) as { readonly version: string }).version;
}
