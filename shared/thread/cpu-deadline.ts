// The deadline of what a thread does: by the processor time that the thread used, so that a busy machine refuses nothing.
import type { Worker } from 'node:worker_threads';
import type { Clock } from '../clock.ts';

/** How many times the deadline may pass on the clock, where the thread gets little of the processor, or waits. */
const slowest = 10;
/** How many times the deadline a job may use the processor: it is to end by itself before its thread is killed, whose heap
 * V8 would return on the main thread in 20 to 90 ms. */
const grace = 1.5;

export interface CpuDeadlineDeps {
  readonly clock: Clock;
  /** A job that checks its time has ended by then. */
  readonly deadlineMs: number;
  /** Called once, unless it is cancelled. */
  readonly onOver: () => void;
}

/** Begins when it is made. */
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

/** 0 where the thread has ended. */
async function readCpuMs(thread: Worker): Promise<number> {
  try {
    const { user, system } = await thread.cpuUsage();
    return (user + system) / 1000;
  } catch {
    return 0;
  }
}
