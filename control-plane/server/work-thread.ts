// A thread for what takes longer than other requests may wait: building, examining, comparing and rewriting large files, and
// deciding recorded requests again. The files are untrusted: a job has a time and a memory, and is ended when either is used up.
import { totalmem } from 'node:os';
import { Worker } from 'node:worker_threads';
import type { Clock } from '../../shared/clock.ts';
import { ownPath } from '../../shared/own-files.ts';
import { type JobThreadDeps, ThreadOfJobs } from '../../shared/thread/job-thread.ts';

/** The first message of each job; work-thread-main.ts has what is done for it. */
export interface WorkHead {
  readonly work: 'build' | 'lift' | 'effect' | 'diff';
}

export interface WorkThreadDeps
  extends Partial<Pick<JobThreadDeps, 'deadlineMs' | 'mostWaiting' | 'startWorker'>> {
  readonly clock: Clock;
}

/** The memory of the container, or of the machine. */
export function memoryMb(): number {
  const bytes = Math.min(process.constrainedMemory() || Number.POSITIVE_INFINITY, totalmem());
  return bytes / 1024 / 1024;
}

/** Far above what the largest configuration takes that workers take. */
const defaultDeadlineMs = 60_000;
/** How long the thread stays for a job that follows at once, such as the poll after a write. */
const idleMs = 2_000;
/** Beside what the process itself has: a quarter of the memory that there is, and enough for 30,000 limits. */
const threadMb = Math.min(512, Math.max(96, Math.floor(memoryMb() / 4)));
const resourceLimits = {
  maxOldGenerationSizeMb: threadMb,
  maxYoungGenerationSizeMb: Math.min(16, threadMb / 16),
  stackSizeMb: 4,
};
const entry = ownPath('control-plane/server/work-thread-main.ts');

/** `mostWaiting` is in characters. */
export function createWorkThread(deps: WorkThreadDeps): ThreadOfJobs {
  const startWorker = () => new Worker(entry, { resourceLimits });
  return new ThreadOfJobs({ deadlineMs: defaultDeadlineMs, startWorker, idleMs, ...deps });
}
