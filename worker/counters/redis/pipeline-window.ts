// Delays a batch to gather more requests (KVSTORE_PIPELINE_WINDOW), which saves wake-ups and writes: most of a
// decision's cost below saturation.
import type { Clock } from '../../../shared/clock.ts';
import { afterPause, sharpenPauses } from '../../fine-pause.ts';

/** Timers have whole milliseconds: in a shorter window the thread is blocked instead. */
const shortestTimerMs = 1;

/** Calls `leave` when the window that started at `sinceMs` (monotonic clock) has passed. */
export type PipelineWindow = (sinceMs: number, leave: () => void) => void;

/**
 * For a window below a millisecond the whole thread sleeps, and wakes once for everything that arrived meanwhile, which
 * is most of the saving. Overlapping windows, as of several stores, are one sleep: the second one has then already
 * passed.
 */
export function createPipelineWindow(windowMs: number, clock: Clock): PipelineWindow {
  if (windowMs >= shortestTimerMs) {
    const fullMs = Math.floor(windowMs);
    return (_, leave) => void clock.after(fullMs, leave);
  }
  sharpenPauses();
  return (sinceMs, leave) => afterPause(windowMs - (clock.monotonicMs() - sinceMs), leave);
}
