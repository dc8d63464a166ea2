// The thread's side of job-thread.ts: receives a job's messages, and answers when all pieces of the result are sent.
import { constants, setPriority } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { getHeapStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { parentPort, receiveMessageOnPort } from 'node:worker_threads';
import type { Job, JobEnd } from './job-thread.ts';

/**
 * `next` returns the messages of the job one by one, then undefined. `check` collects garbage, and throws when the job has
 * used up its time or its memory, which ends the job without killing the thread. Call it between the steps of a job.
 */
export type DoJob = (
  next: () => unknown,
  send: (piece: object) => void,
  check: () => void,
) => void | Promise<void>;

export function serveJobs(doJob: DoJob): void {
  stepBack();
  parentPort?.on('message', (job: Job) => void answer(doJob, job));
}

async function answer(doJob: DoJob, job: Job): Promise<void> {
  const end = await run(doJob, job);
  // The target of a WeakRef stays alive until the turn ends.
  await setImmediate();
  returnMemory();
  parentPort?.postMessage(end satisfies JobEnd);
}

async function run(doJob: DoJob, { pieces, deadlineMs }: Job): Promise<JobEnd> {
  const endMs = cpuMs() + deadlineMs;
  const heap = new JobHeap();
  let nextCheckMs = 0;
  try {
    await doJob(
      () => receiveMessageOnPort(pieces)?.message,
      (piece) => pieces.postMessage(piece),
      () => {
        const nowMs = performance.now();
        if (nowMs < nextCheckMs) return;
        if (cpuMs() > endMs) throw new OverBound('overtime');
        if (heap.isAlmostFull()) throw new OverBound('out of memory');
        nextCheckMs = nowMs + checkMs;
      },
    );
    return 'done';
  } catch (error) {
    if (error instanceof OverBound) return error.end;
    throw error;
  }
}

class OverBound extends Error {
  readonly end: JobEnd;

  constructor(end: JobEnd) {
    super(end);
    this.end = end;
  }
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** The least time between two checks: a check takes longer than most steps. */
const checkMs = 2;
/** The share of the heap that a job may use: a step may need the rest. */
const mostUsed = 0.75;
/** The share of the heap that may fill before the next collection: by itself V8 would let it grow to several times what is
 * in use. */
const mostGarbage = 1 / 8;

class JobHeap {
  /** The size after the last collection. */
  #usedBytes = getHeapStatistics().used_heap_size;

  /** Collects garbage first if there may be much. */
  isAlmostFull(): boolean {
    const { used_heap_size: bytes, heap_size_limit: limit } = getHeapStatistics();
    if (bytes - this.#usedBytes < limit * mostGarbage && bytes < limit * mostUsed) return false;
    if (bytes < limit * mostUsed) collect({ type: 'major', execution: 'sync' });
    else collectAll();
    this.#usedBytes = getHeapStatistics().used_heap_size;
    return this.#usedBytes > limit * mostUsed;
  }
}

/** The heap that a small job leaves is reused by the next one. */
const mostRetainedBytes = 32 * 1024 * 1024;

/**
 * Frees memory here, before the receiver makes its own objects. If a thread ended with a large heap, V8 would free it
 * eight seconds later on the main thread, taking 20 to 90 ms there.
 */
function returnMemory(): void {
  if (getHeapStatistics().total_physical_size <= mostRetainedBytes) return;
  collectAll();
}

function collectAll(): void {
  // Only this kind also frees the pages that V8 retains for reuse.
  collect({ type: 'major', flavor: 'last-resort', execution: 'sync' });
}

function collect(options: NodeJS.GCOptions): void {
  collector ??= toCollector();
  collector(options);
}

let collector: NodeJS.GCFunction | undefined;

function toCollector(): NodeJS.GCFunction {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as NodeJS.GCFunction;
}

/**
 * Lowers the priority, so that the main thread gets processor time on machines with few cores. Outside Linux this would
 * slow down the whole process.
 */
function stepBack(): void {
  if (process.platform !== 'linux') return;
  try {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A sandbox may forbid it; the thread then runs with normal priority.
  }
}
