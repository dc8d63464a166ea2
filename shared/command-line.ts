// How a person starts the programs, for the texts that say so: through npm in the sources, by the
// package's command where they were built.
import { extname } from 'node:path';

const isBuilt = extname(import.meta.filename) === '.js';

export function commandLine(program: 'worker' | 'client' | 'control-plane'): string {
  return isBuilt ? `ratelane ${program}` : `npm run -s ${program} --`;
}
