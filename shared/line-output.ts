// Writes whole lines to standard error or standard output and never waits for the reader.
import { writeSync } from 'node:fs';
import type { Writable } from 'node:stream';
import { errorText } from './errors.ts';

export interface LineOutput {
  /** True while the output accepts lines without dropping them. */
  readonly ready: boolean;
  /** `lines` ends with a newline. Lines that do not fit, or cannot be written, are dropped and counted. */
  write(lines: string): void;
  /** The number of writes dropped since the start. */
  readonly droppedCount: number;
}

/** Called when the output can be written again: how many writes were dropped meanwhile, and why. */
export type OnRecovered = (droppedCount: number, reason: string) => void;

/** Enough for a burst, and bounded where the reader has stopped. */
const maxBufferedBytes = 4 * 1024 * 1024;

/** Wraps `process.stderr`, `process.stdout` or a test's stream, which the caller still owns. */
export function createLineOutput(
  stream: Writable,
  onRecovered: OnRecovered = () => {},
): LineOutput {
  return new StreamLines(stream, onRecovered);
}

/**
 * A reader that disconnected does not return. A file may recover, such as one on a disk that was full: by then the
 * stream has ended, so its file is written to directly.
 */
class StreamLines implements LineOutput {
  readonly #stream: Writable & { readonly fd?: number };
  readonly #onRecovered: OnRecovered;
  droppedCount = 0;
  #state: 'open' | 'file' | 'gone' = 'open';
  /** Set while the file cannot be written: why, and how many writes had been dropped before. */
  #failure: { readonly reason: string; readonly before: number } | undefined;
  /** True when the last write ended within a line: a full disk may accept part of one. */
  #endsWithinLine = false;

  constructor(stream: Writable, onRecovered: OnRecovered) {
    this.#stream = stream;
    this.#onRecovered = onRecovered;
    // An error must not end the process. A file reports each write that fails.
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (this.#state !== 'open') return;
      this.#state = error.code === 'EPIPE' || this.#stream.fd === undefined ? 'gone' : 'file';
      this.#drop(error);
    });
  }

  get ready(): boolean {
    // Only a write shows whether a file can be written again.
    if (this.#state !== 'open') return this.#state === 'file';
    return this.#stream.writableLength < maxBufferedBytes;
  }

  /** Called without its object, hence an arrow function. */
  readonly write = (lines: string): void => {
    if (this.#state === 'file') this.#writeToFile(lines);
    else if (this.ready) this.#stream.write(lines);
    else this.droppedCount++;
  };

  #writeToFile(lines: string): void {
    const bytes = Buffer.from(this.#endsWithinLine ? `\n${lines}` : lines);
    try {
      const written = writeSync(this.#stream.fd ?? -1, bytes);
      if (written > 0) this.#endsWithinLine = written < bytes.length;
      if (written < bytes.length) throw new Error('no space for a whole line');
    } catch (error) {
      this.#drop(error);
      return;
    }
    const failure = this.#failure;
    this.#failure = undefined;
    if (failure !== undefined)
      this.#onRecovered(this.droppedCount - failure.before, failure.reason);
  }

  #drop(error: unknown): void {
    this.#failure ??= { reason: errorText(error), before: this.droppedCount };
    this.droppedCount++;
  }
}
