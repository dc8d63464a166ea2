// What a worker's log says, by level, as a person reads it.
import type { WorkerProcess } from './worker-process.ts';

/** The messages of one level so far, in order. */
export function messages(worker: WorkerProcess, level: 'error' | 'warning'): string[] {
  return [...worker.output().matchAll(/level=(\w+) msg=(.*)/g)]
    .filter((match) => match[1] === level)
    .map((match) => JSON.parse(match[2]?.startsWith('"') ? match[2] : `"${match[2]}"`));
}
