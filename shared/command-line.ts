// The command that starts each program, for help and messages: npm in the sources, the package's own
// command where it was built.
import { isBuilt } from './own-files.ts';

export function commandLine(program: 'worker' | 'client' | 'control-plane'): string {
  return isBuilt ? `ratelane ${program}` : `npm run -s ${program} --`;
}
