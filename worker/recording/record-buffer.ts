// Lines of recorded decisions that wait to be written: bounded; decisions that do not fit are counted, and reported by
// a line of their own later.
import type { RecordGap } from '../../shared/decision-record.ts';
import type { Counter } from '../metrics.ts';
import type { RecordSink } from './recorder.ts';

/** Plain data: several processes send their batches to the one that writes. */
export interface RecordBatch {
  /** Complete lines. */
  readonly text: string;
  readonly bytes: number;
  /** The number of lines, and the times of their decisions. */
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
  /** Call it when a batch that was taken was not and will not be written. */
  lose(batch: RecordBatch): void;
  /** Everything since the last call; undefined when there is nothing. */
  drain(): RecordBatch | undefined;
}

/** With one flush per 200 ms, 10 MB per second. */
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
    beforeDraining: (task) => void tasks.push(task),
    addBatch,
    lose,
    drain() {
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
