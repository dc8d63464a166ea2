// How long a batch is held back so that more can join it (KVSTORE_PIPELINE_WINDOW). What it buys is fewer
// wake-ups and writes, which are most of what a decision costs below saturation.
import type { Clock } from '../../shared/clock.ts';
import { afterPause, sharpenPauses } from '../../shared/fine-pause.ts';

/** Timers count whole milliseconds: what is shorter is slept through. */
const shortestTimerMs = 1;

/** Calls `leave` when the window that began at `sinceMs`, on the monotonic clock, has passed. */
export type PipelineWindow = (sinceMs: number, leave: () => void) => void;

/**
 * In a window below a millisecond the whole process sleeps. It is woken once for all that came meanwhile
 * and not for each, which is the greater part of what is saved. Windows that overlap, as those of several
 * stores do, are one sleep: what is left of the second one is nothing.
 */
export function createPipelineWindow(windowMs: number, clock: Clock): PipelineWindow {
  if (windowMs >= shortestTimerMs) {
    const wholeMs = Math.floor(windowMs);
    return (_, leave) => void clock.after(wholeMs, leave);
  }
  sharpenPauses();
  return (sinceMs, leave) => afterPause(windowMs - (clock.monotonicMs() - sinceMs), leave);
}
