// Appends recorded decisions to a file, which is rotated when it is full: `path`, `path.1`, ... It never delays a
// decision. Lines that cannot be written are dropped and counted, and the next written line has their number.
import { constants } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { type Clock, repeatAfter } from '../../shared/clock.ts';
import { errorText } from '../../shared/errors.ts';
import type { Log } from '../../shared/log.ts';
import { createRepeatedLog } from '../../shared/repeated-log.ts';
import { unlessAborted } from '../../shared/unless-aborted.ts';
import type { Metrics } from '../metrics.ts';
import { createRecordBuffer, type RecordBatch } from './record-buffer.ts';
import type { RecordSink } from './recorder.ts';

export interface RecordFileOptions {
  readonly path: string;
  /** The size of one file; at least twice the size of the buffer. */
  readonly maxBytes: number;
  /** The number of files, including the one being written. */
  readonly files: number;
}

export interface RecordFileDeps {
  readonly options: RecordFileOptions;
  /** The header of each file; ends with a newline. */
  readonly header: () => string;
  readonly metrics: Pick<Metrics, 'counter'>;
  readonly log: Pick<Log, 'warning' | 'notice'>;
  readonly clock: Clock;
}

export interface RecordFile extends RecordSink {
  addBatch(batch: RecordBatch): void;
  /** Writes the buffered lines, for at most `graceMs`, and closes the file. */
  stop(graceMs: number): Promise<void>;
}

/** The time between two writes, unless many lines wait. */
export const flushIntervalMs = 200;
const flushBytes = 256 * 1024;
/** The pause after a failure. */
export const retryMs = 5_000;
/** The least time between log lines about failures. */
const failureIntervalMs = 60_000;

/** Readable only by its owner: it contains the values of descriptors. */
const fileMode = 0o600;
/** O_NONBLOCK makes a pipe without a reader an error rather than a wait. */
const fileFlags = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;

interface OpenFile {
  readonly handle: FileHandle;
  /** False for a device or a pipe, which is never rotated. */
  readonly isRegular: boolean;
  bytes: number;
}

export function createRecordFile(deps: RecordFileDeps): RecordFile {
  const { header, metrics, log, clock } = deps;
  const { path, maxBytes, files } = deps.options;
  const buffer = createRecordBuffer(metrics.counter('ratelimit.recording.dropped'));
  const written = metrics.counter('ratelimit.recording.written');
  const failures = createRepeatedLog({
    clock,
    intervalMs: failureIntervalMs,
    again: 'when-changed',
    write: (reason) =>
      log.warning(
        `Decisions are not recorded in ${path}: ${reason}; trying again every ${retryMs / 1000}s, decisions are not affected`,
      ),
  });
  let file: OpenFile | undefined;
  let writing: Promise<void> | undefined;
  let isDraining = false;
  let retryAtMs = Number.NEGATIVE_INFINITY;
  const cancelFlush = repeatAfter(clock, flushIntervalMs, flush);

  async function openFile(): Promise<OpenFile> {
    const handle = await open(path, fileFlags, fileMode);
    try {
      const stat = await handle.stat();
      const isRegular = stat.isFile();
      const opened = { handle, isRegular, bytes: isRegular ? stat.size : 0 };
      // A full disk or a killed process may have truncated the last line.
      const start = (await endsWithinLine(opened)) ? '\n' : '';
      await append(opened, start + header());
      return opened;
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  async function turnOver(): Promise<void> {
    await closeFile();
    if (files === 1) await rm(path, { force: true });
    for (let number = files - 1; number > 0; number--) {
      const from = number === 1 ? path : `${path}.${number - 1}`;
      await rename(from, `${path}.${number}`).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error;
      });
    }
  }

  async function closeFile(): Promise<void> {
    const closing = file;
    file = undefined;
    await closing?.handle.close();
  }

  async function write(batch: RecordBatch): Promise<void> {
    try {
      file ??= await openFile();
      if (file.isRegular && file.bytes + batch.bytes > maxBytes) {
        await turnOver();
        file = await openFile();
      }
      const gap = batch.gap === undefined ? '' : `${JSON.stringify(batch.gap)}\n`;
      await append(file, batch.text + gap);
      written.add(batch.decisions);
      if (failures.recover() !== undefined) log.notice(`Decisions are recorded in ${path} again`);
    } catch (error) {
      buffer.lose(batch);
      failures.report(errorText(error));
      retryAtMs = clock.monotonicMs() + retryMs;
      await closeFile().catch(() => {});
    }
  }

  /** Never rejects. */
  async function flush(): Promise<void> {
    if (writing !== undefined) return writing;
    if (clock.monotonicMs() < retryAtMs) return;
    isDraining = true;
    const batch = buffer.drain();
    isDraining = false;
    if (batch === undefined) return;
    writing = write(batch);
    await writing;
    writing = undefined;
  }

  const flushIfMuch = () => {
    // While a batch is being taken, added lines are part of it.
    if (!isDraining && buffer.bytes >= flushBytes) void flush();
  };

  return {
    add(line, timeMs) {
      buffer.add(line, timeMs);
      flushIfMuch();
    },
    addBatch(batch) {
      buffer.addBatch(batch);
      flushIfMuch();
    },
    drop: buffer.drop,
    beforeDraining: buffer.beforeDraining,
    async stop(graceMs) {
      cancelFlush();
      const end = async () => {
        await writing;
        await flush();
        await closeFile();
      };
      await unlessAborted(end(), AbortSignal.timeout(graceMs)).catch(() => {});
    },
  };
}

async function append(file: OpenFile, text: string): Promise<void> {
  const bytes = Buffer.from(text);
  await file.handle.appendFile(bytes);
  file.bytes += bytes.length;
}

async function endsWithinLine({ handle, bytes }: OpenFile): Promise<boolean> {
  if (bytes === 0) return false;
  const { buffer } = await handle.read({ buffer: Buffer.alloc(1), position: bytes - 1 });
  return buffer.toString() !== '\n';
}
