// What a thread of jobs runs (job-thread.ts has its other side): it takes a job's messages, and answers when all pieces of
// the result are sent.
import { constants, setPriority } from 'node:os';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
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
  returnMemory();
  parentPort?.postMessage('done');
}

/** What a small job leaves is reused by the next one. */
const mostKeptBytes = 32 * 1024 * 1024;

/** Here, before the receiver makes its own objects. Of a thread that ends with a large heap V8 would return the memory
 * eight seconds later on the main thread, which takes this 20 to 90 ms. */
function returnMemory(): void {
  if (getHeapStatistics().total_physical_size <= mostKeptBytes) return;
  collect ??= toCollect();
  // The only kind that also returns the pages that V8 keeps for reuse.
  collect({ type: 'major', flavor: 'last-resort', execution: 'sync' });
}

let collect: NodeJS.GCFunction | undefined;

function toCollect(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as NodeJS.GCFunction;
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
