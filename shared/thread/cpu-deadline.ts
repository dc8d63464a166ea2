// A deadline for a thread's job, measured in processor time that the thread used, so that a busy machine fails no job.
import type { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';

/** How many times the deadline may pass on the clock, for a thread that waits or gets little processor time. */
const slowest = 10;
/**
 * How many times the deadline's processor time a job may use. Above 1, so that a job can end by itself before its
 * thread is killed: V8 would free the killed thread's heap on the main thread, in 20 to 90 ms.
 */
const grace = 1.5;

export interface CpuDeadlineDeps {
  readonly clock: Clock;
  /** A job that checks its time ends by then. */
  readonly deadlineMs: number;
  /** Called once, unless it is cancelled. */
  readonly onOver: () => void;
}

/** Starts on construction. */
export class CpuDeadline {
  readonly #thread: Worker;
  readonly #deps: CpuDeadlineDeps;
  readonly #startMs: number;
  readonly #usedBefore: Promise<number>;
  #isCancelled = false;
  #cancelCheck: () => void;

  constructor(thread: Worker, deps: CpuDeadlineDeps) {
    this.#thread = thread;
    this.#deps = deps;
    this.#startMs = deps.clock.monotonicMs();
    this.#usedBefore = readCpuMs(thread);
    this.#cancelCheck = this.#checkAfter(grace * deps.deadlineMs);
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#cancelCheck();
  }

  #checkAfter(ms: number): () => void {
    return this.#deps.clock.after(ms, () => void this.#check());
  }

  async #check(): Promise<void> {
    const { clock, deadlineMs, onOver } = this.#deps;
    const usedMs = (await readCpuMs(this.#thread)) - (await this.#usedBefore);
    if (this.#isCancelled) return;
    const leftMs = grace * deadlineMs - usedMs;
    const isLate = clock.monotonicMs() - this.#startMs >= slowest * deadlineMs;
    if (leftMs <= 0 || isLate) onOver();
    else this.#cancelCheck = this.#checkAfter(Math.max(leftMs, deadlineMs / slowest));
  }
}

/** 0 if the thread has ended. */
async function readCpuMs(thread: Worker): Promise<number> {
  try {
    const { user, system } = await thread.cpuUsage();
    return (user + system) / 1000;
  } catch {
    return 0;
  }
}
