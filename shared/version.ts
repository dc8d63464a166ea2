// The version of all programs, which is that of the package.
import { readFileSync } from 'node:fs';
import { ownPath } from './own-files.ts';

export function readVersion(): string {
  const text = readFileSync(ownPath('package.json'), 'utf8');
  return (JSON.parse(text) as { readonly version: string }).version;
}
