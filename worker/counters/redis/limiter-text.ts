// The command that takes hits on a limiter's counter. The part that is the same for all hits of a limit in
// a window is cached as text.
import type { LimiterWindow } from '../store.ts';
import { type CommandText, toBulkText } from './connection.ts';
import { limiterScripts } from './limiter-scripts.ts';

/** The parts before and after the key. */
interface KeptText {
  readonly head: string;
  readonly tail: string;
  readonly argumentCount: number;
}

const keptTexts = new WeakMap<LimiterWindow, KeptText>();
/** Text for single hits, which is the usual case. */
const oneHit = toBulkText('1') + toBulkText('1');

/** The arguments of both scripts before the jitter, in order. */
export function toArguments({
  algorithm,
  limit,
  capacity,
  countsOver,
  windowStart,
  windowSeconds,
  isEven,
}: LimiterWindow): number[] {
  const window =
    algorithm === 'sliding_window'
      ? [windowStart * 1000, windowSeconds * 1000, isEven ? 1 : 0]
      : [windowSeconds * 1_000_000];
  return [limit, capacity, countsOver ? 1 : 0, ...window];
}

/** `EVALSHA`, with the key, the jitter in seconds and the runs of hits. */
export function toLimiterText(
  limiter: LimiterWindow,
  key: string,
  jitter: number,
  runs: readonly number[],
): CommandText {
  let kept = keptTexts.get(limiter);
  if (kept === undefined) {
    kept = toKeptText(limiter);
    keptTexts.set(limiter, kept);
  }
  const { head, tail, argumentCount } = kept;
  const isOneHit = runs.length === 2 && runs[0] === 1 && runs[1] === 1;
  const count = `*${argumentCount + runs.length}\r\n`;
  const hits = isOneHit ? oneHit : runs.map((number) => toBulkText(`${number}`)).join('');
  return count + head + toBulkText(key) + tail + toBulkText(`${jitter}`) + hits;
}

function toKeptText(limiter: LimiterWindow): KeptText {
  const { sha } = limiterScripts[limiter.algorithm];
  const numbers = toArguments(limiter);
  return {
    head: toBulkText('EVALSHA') + toBulkText(sha) + toBulkText('1'),
    tail: numbers.map((number) => toBulkText(`${number}`)).join(''),
    // The name, the script, the number of keys, the key and the jitter.
    argumentCount: numbers.length + 5,
  };
}
