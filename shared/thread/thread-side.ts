// What a thread of jobs runs (job-thread.ts has its other side): it takes a job's messages, and answers when all pieces of
// the result are sent.
import { constants, setPriority } from 'node:os';
import { type MessagePort, parentPort, receiveMessageOnPort } from 'node:worker_threads';
import type { Job } from './job-thread.ts';

/** `next` gives the messages of the job one by one, then undefined. */
export type DoJob = (next: () => unknown, send: (piece: object) => void) => void | Promise<void>;

export function serveJobs(doJob: DoJob): void {
  stepBack();
  parentPort?.on('message', ({ pieces }: Job) => void answer(doJob, pieces));
}

async function answer(doJob: DoJob, pieces: MessagePort): Promise<void> {
  await doJob(
    () => receiveMessageOnPort(pieces)?.message,
    (piece) => pieces.postMessage(piece),
  );
  parentPort?.postMessage('done');
}

/** Lower priority, so that the main thread keeps the processor where there are few. Outside Linux this would slow
 * down the whole process. */
function stepBack(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A sandbox may forbid it; the thread then runs with normal priority.
  }
}
