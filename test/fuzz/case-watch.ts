// Ends a process whose case never returns, and reports which one it was: an infinite loop gives a test no chance to do
// so itself. Runs in its own thread.
import { writeSync } from 'node:fs';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

/** Far above the time limit of a case, which the run itself checks. */
const hangMs = 60_000;
const checkMs = 1000;

interface Shared {
  readonly what: string;
  /** The seed of the running case, or -1. */
  readonly running: Int32Array;
}

export function startCaseWatch(what: string) {
  const running = new Int32Array(new SharedArrayBuffer(4));
  running[0] = -1;
  const worker = new Worker(new URL(import.meta.url), { workerData: { what, running } });
  worker.unref();
  return {
    begin(seed: number) {
      Atomics.store(running, 0, seed);
    },
    end() {
      void worker.terminate();
    },
  };
}

function watch({ what, running }: Shared): void {
  let seen = -1;
  let sinceMs = performance.now();
  setInterval(() => {
    const seed = Atomics.load(running, 0);
    if (seed !== seen) {
      seen = seed;
      sinceMs = performance.now();
    } else if (seed >= 0 && performance.now() - sinceMs > hangMs) {
      writeSync(2, `FUZZ_SEED=${seed} of ${what} does not return\n`);
      process.kill(process.pid, 'SIGKILL');
    }
  }, checkMs);
}

if (!isMainThread && workerData?.running instanceof Int32Array) watch(workerData as Shared);
