// Collects new objects while long work makes many that stay. V8 copies those that are in use when its young generation
// is full: of 16 MB of rules that takes ten milliseconds, in which nothing is answered; a few megabytes take one.
import { getHeapSpaceStatistics } from 'node:v8';

const mostBytes = 2 * 1024 * 1024;

/** Does nothing while there are few of them, and without `--expose-gc`. */
export function collectYoungObjects(): void {
  const { gc } = globalThis;
  if (gc === undefined) return;
  const young = getHeapSpaceStatistics().find(({ space_name: name }) => name === 'new_space');
  if (young !== undefined && young.space_used_size > mostBytes) gc({ type: 'minor' });
}
