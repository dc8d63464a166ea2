// Whole lines to standard error or standard output, without ever waiting for whoever reads them.
// What the lines hold is left to the callers (shared/log.ts, worker/metrics).
import type { Writable } from 'node:stream';

export interface LineOutput {
  /** True while lines given now would be kept. */
  readonly ready: boolean;
  /** `lines` ends with a newline. What does not fit is dropped and counted. */
  write(lines: string): void;
  /** Writes that were dropped since the start. */
  readonly droppedCount: number;
}

/** Enough for a burst; a reader that stands still must not make the process grow. */
const maxBufferedBytes = 4 * 1024 * 1024;

/** Wraps `process.stderr`, `process.stdout`, or what a test gives. The stream stays the caller's. */
export function createLineOutput(stream: Writable): LineOutput {
  let droppedCount = 0;
  let broken = false;
  // A reader that went away (EPIPE) must not end the process, and there is nowhere to say it.
  stream.on('error', () => {
    broken = true;
  });
  const isReady = () => !broken && stream.writableLength < maxBufferedBytes;
  return {
    get ready() {
      return isReady();
    },
    write(lines) {
      if (isReady()) stream.write(lines);
      else droppedCount++;
    },
    get droppedCount() {
      return droppedCount;
    },
  };
}
