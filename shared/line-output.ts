// Writes whole lines to standard error or standard output and never waits for the reader.
import type { Writable } from 'node:stream';

export interface LineOutput {
  /** True while the output takes lines without dropping them. */
  readonly ready: boolean;
  /** `lines` ends with a newline. Lines that do not fit are dropped and counted. */
  write(lines: string): void;
  /** Writes that were dropped since the start. */
  readonly droppedCount: number;
}

/** Enough for a burst, and bounded where the reader has stopped. */
const maxBufferedBytes = 4 * 1024 * 1024;

/** Wraps `process.stderr`, `process.stdout` or a test's stream, which the caller keeps owning. */
export function createLineOutput(stream: Writable): LineOutput {
  let droppedCount = 0;
  let broken = false;
  // A reader that went away (EPIPE) must not end the process, and there is nowhere to log it.
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
