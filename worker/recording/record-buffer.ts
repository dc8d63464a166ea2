// Lines of recorded decisions on their way to the file: bounded, and what does not fit is counted, and reported by
// a line of its own later.
import type { RecordGap } from '../../shared/decision-record.ts';
import type { Counter } from '../metrics.ts';
import type { RecordSink } from './recorder.ts';

/** Plain data: several processes send theirs to the one that writes. */
export interface RecordBatch {
  /** Whole lines. */
  readonly text: string;
  readonly bytes: number;
  /** How many lines, and the times of their decisions. */
  readonly decisions: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** The decisions that are missing before or among these lines. */
  readonly gap: RecordGap | undefined;
}

export interface RecordBuffer extends RecordSink {
  readonly bytes: number;
  /** Adds a batch of another process. */
  addBatch(batch: RecordBatch): void;
  /** A batch that was taken is not written, now or ever. */
  lose(batch: RecordBatch): void;
  /** Everything since the last call; undefined when there is nothing. */
  take(): RecordBatch | undefined;
}

/** With one flush in 200 ms, 10 MB a second. */
export const maxBufferedBytes = 2 * 1024 * 1024;

const nothing: RecordBatch = {
  text: '',
  bytes: 0,
  decisions: 0,
  fromMs: Number.POSITIVE_INFINITY,
  toMs: Number.NEGATIVE_INFINITY,
  gap: undefined,
};

/** `dropped` counts the decisions that do not fit or are left out. */
export function createRecordBuffer(dropped: Counter, maxBytes = maxBufferedBytes): RecordBuffer {
  const tasks: (() => void)[] = [];
  let texts: string[] = [];
  let sum = nothing;

  function addBatch(batch: RecordBatch): void {
    const bytes = sum.bytes + batch.bytes;
    if (bytes > maxBytes) {
      lose(batch);
      return;
    }
    texts.push(batch.text);
    sum = {
      text: '',
      bytes,
      decisions: sum.decisions + batch.decisions,
      fromMs: Math.min(sum.fromMs, batch.fromMs),
      toMs: Math.max(sum.toMs, batch.toMs),
      gap: mergeGaps(sum.gap, batch.gap),
    };
  }

  function lose({ decisions, fromMs, toMs, gap }: RecordBatch): void {
    if (decisions > 0) drop({ dropped: decisions, from: fromMs, time: toMs });
    sum = { ...sum, gap: mergeGaps(sum.gap, gap) };
  }

  function drop(gap: RecordGap): void {
    dropped.add(gap.dropped);
    sum = { ...sum, gap: mergeGaps(sum.gap, gap) };
  }

  const ofOne = (text: string, timeMs: number): RecordBatch => ({
    text,
    bytes: Buffer.byteLength(text),
    decisions: 1,
    fromMs: timeMs,
    toMs: timeMs,
    gap: undefined,
  });

  return {
    get bytes() {
      return sum.bytes;
    },
    add: (line, timeMs) => addBatch(ofOne(line, timeMs)),
    drop,
    beforeTaking: (task) => void tasks.push(task),
    addBatch,
    lose,
    take() {
      for (const task of tasks) task();
      if (sum === nothing) return undefined;
      const batch = { ...sum, text: texts.join('') };
      texts = [];
      sum = nothing;
      return batch;
    },
  };
}

function mergeGaps(
  one: RecordGap | undefined,
  other: RecordGap | undefined,
): RecordGap | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    dropped: one.dropped + other.dropped,
    from: Math.min(one.from, other.from),
    time: Math.max(one.time, other.time),
  };
}
